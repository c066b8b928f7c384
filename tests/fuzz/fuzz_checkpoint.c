/*
 * Any bytes as a checkpoint: refused with 65 and a text that names it, or sound
 * for all who read it.
 *
 * What begins with T is a list of entries that is made a tar here, and all
 * hashes are then 0: what fuzzers change is behind neither checksums nor
 * hashes. An entry is its name and NUL, its type in the tar, the length of its
 * data (u16), a number to add to the announced size (u8), and the data.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "fuzz.h"
#include "state/checkpoint.h"

enum { BLOCK = 512 };

static int no_hashes;

void __real_dl_hash_hex(struct dl_hash *h, char out[DL_HASH_HEX]);
void __wrap_dl_hash_hex(struct dl_hash *h, char out[DL_HASH_HEX]);

void __wrap_dl_hash_hex(struct dl_hash *h, char out[DL_HASH_HEX])
{
	__real_dl_hash_hex(h, out);
	if (no_hashes)
		memset(out, '0', DL_HASH_HEX - 1);
}

static void add_header(
	struct dl_buf *tar, const char *name, char type, unsigned size)
{
	char block[BLOCK] = {0};
	unsigned sum = 0;

	snprintf(block, 100, "%s", name);
	memcpy(block + 100, "0000644", 8);
	snprintf(block + 124, 12, "%011o", size);
	memset(block + 148, ' ', 8);
	block[156] = type;
	memcpy(block + 257,
		"ustar\0"
		"00",
		8);
	for (int i = 0; i < BLOCK; i++)
		sum += (unsigned char)block[i];
	snprintf(block + 148, 8, "%06o", sum & 0777777);
	dl_buf_add(tar, block, BLOCK);
}

/* The next entry; what is left of the input. */
static size_t add_entry(struct dl_buf *tar, const uint8_t *data, size_t n)
{
	static const char zeros[BLOCK];
	const uint8_t *end = memchr(data, 0, n);
	size_t at = end ? (size_t)(end - data) + 1 : n, length;

	if (n - at < 4)
		return 0;
	length = dl_le16(data + at + 1);
	add_header(tar, (const char *)data, (char)data[at],
		(unsigned)length + data[at + 3]);
	at += 4;
	if (length > n - at)
		length = n - at;
	dl_buf_add(tar, data + at, length);
	dl_buf_add(tar, zeros, (BLOCK - length % BLOCK) % BLOCK);
	return n - at - length;
}

static void make_tar(struct dl_buf *tar, const uint8_t *data, size_t n)
{
	static const char end[2 * BLOCK];
	size_t left = n;

	while (left)
		left = add_entry(tar, data + n - left, left);
	dl_buf_add(tar, end, sizeof end);
}

static void check_values(const char *path)
{
	struct dl_err e = {0};
	struct dl_layout l;
	float **values;

	if (dl_checkpoint_read(path, &l, &values, &e))
		abort();
	for (uint32_t p = 0; p < l.fragments; p++)
		dl_big_free(values[p], l.fragment[p].elements * sizeof(float));
	free(values);
	dl_layout_release(&l);
}

static void check(const char *path)
{
	struct dl_checkpoint_info info;
	struct dl_err e = {0};
	int rc = dl_checkpoint_check(path, &info, &e);

	dl_checkpoint_is(path);
	if (!rc)
		check_values(path);
	else if (rc != DL_DATA || strncmp(e.text, path, strlen(path)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dl_buf file = DL_BUF_INIT;
	int fd = memfd_create("checkpoint", 0);
	char path[40];

	no_hashes = n && *data == 'T';
	if (no_hashes)
		make_tar(&file, data + 1, n - 1);
	else
		dl_buf_add(&file, data, n);
	if (fd < 0 || dl_write_full(fd, file.data, file.len))
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	check(path);
	close(fd);
	dl_buf_free(&file);
	return 0;
}
