#include "base/hash.h"

#include <sodium.h>
#include <string.h>

#include "base/mem.h"

/*
 * As RFC 7693 has it, in plain words: each of its operations waits for the one
 * before, and where those of vectors take two cycles, as libsodium's do, this
 * is twice as fast.
 */
static const uint64_t start[8] = {
	0x6a09e667f3bcc908,
	0xbb67ae8584caa73b,
	0x3c6ef372fe94f82b,
	0xa54ff53a5f1d36f1,
	0x510e527fade682d1,
	0x9b05688c2b3e6c1f,
	0x1f83d9abfb41bd6b,
	0x5be0cd19137e2179,
};

void dl_hash_init(struct dl_hash *h)
{
	*h = (struct dl_hash){.n = 0};
	memcpy(h->state, start, sizeof start);
	h->state[0] ^= 0x01010000 ^ DL_HASH_BYTES;
}

static inline uint64_t turn(uint64_t x, unsigned by)
{
	return x >> by | x << (64 - by);
}

/* x and y are added first, as they wait for nothing. */
static inline void mix(uint64_t *a, uint64_t *b, uint64_t *c, uint64_t *d,
	uint64_t x, uint64_t y)
{
	*a = *a + x + *b;
	*d = turn(*d ^ *a, 32);
	*c += *d;
	*b = turn(*b ^ *c, 24);
	*a = *a + y + *b;
	*d = turn(*d ^ *a, 16);
	*c += *d;
	*b = turn(*b ^ *c, 63);
}

/* In which order a round takes the words of a block. */
static const unsigned char order[10][16] = {
	{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	{14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
	{11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
	{7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
	{9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
	{2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
	{12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
	{13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
	{6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
	{10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

#define MIX(r, i, a, b, c, d)                                                  \
	mix(&v[a], &v[b], &v[c], &v[d], m[order[r][2 * (i)]],                  \
		m[order[r][2 * (i) + 1]])
#define ROUND(r)                                                               \
	MIX(r, 0, 0, 4, 8, 12);                                                \
	MIX(r, 1, 1, 5, 9, 13);                                                \
	MIX(r, 2, 2, 6, 10, 14);                                               \
	MIX(r, 3, 3, 7, 11, 15);                                               \
	MIX(r, 4, 0, 5, 10, 15);                                               \
	MIX(r, 5, 1, 6, 11, 12);                                               \
	MIX(r, 6, 2, 7, 8, 13);                                                \
	MIX(r, 7, 3, 4, 9, 14)

/* A block, the last of what is in bytes; `last` has all bits set in the last
 * of all. */
static void take(struct dl_hash *h, const unsigned char *p, uint64_t last)
{
	uint64_t m[16], v[16];

	for (size_t i = 0; i < 16; i++)
		m[i] = dl_le64(p + 8 * i);
	memcpy(v, h->state, sizeof h->state);
	memcpy(v + 8, start, sizeof start);
	v[12] ^= h->bytes;
	v[14] ^= last;
	ROUND(0);
	ROUND(1);
	ROUND(2);
	ROUND(3);
	ROUND(4);
	ROUND(5);
	ROUND(6);
	ROUND(7);
	ROUND(8);
	ROUND(9);
	ROUND(0);
	ROUND(1);
	for (size_t i = 0; i < 8; i++)
		h->state[i] ^= v[i] ^ v[i + 8];
}

static void take_whole(struct dl_hash *h, const unsigned char *p)
{
	h->bytes += DL_HASH_BLOCK;
	take(h, p, 0);
}

void dl_hash_add(struct dl_hash *h, const void *data, size_t n)
{
	const unsigned char *p = data;
	size_t room = DL_HASH_BLOCK - h->n;

	/* A full block waits: it may be the last. */
	if (n > room) {
		memcpy(h->block + h->n, p, room);
		take_whole(h, h->block);
		p += room;
		n -= room;
		h->n = 0;
		for (; n > DL_HASH_BLOCK; n -= DL_HASH_BLOCK) {
			take_whole(h, p);
			p += DL_HASH_BLOCK;
		}
	}
	if (n)
		memcpy(h->block + h->n, p, n);
	h->n += n;
}

void dl_hash_hex(struct dl_hash *h, char out[DL_HASH_HEX])
{
	unsigned char sum[DL_HASH_BYTES];

	memset(h->block + h->n, 0, DL_HASH_BLOCK - h->n);
	h->bytes += h->n;
	take(h, h->block, UINT64_MAX);
	for (size_t i = 0; i < sizeof sum; i++)
		sum[i] = (unsigned char)(h->state[i / 8] >> i % 8 * 8);
	sodium_bin2hex(out, DL_HASH_HEX, sum, sizeof sum);
}
