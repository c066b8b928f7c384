/*
 * What is gathered of pushes as they come, in pieces that are shuffled between
 * them, is what reading them in the end gives, to the bit.
 */
#include "cmd/sync/arrival.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "cmd/segments.h"
#include "cmd/sync/pushes.h"
#include "merge/gram.h"
#include "tests/tap.h"

/* Their order by name is not that of the layout, and one is no rda. */
static const char layout_text[] = "# name\tdtype\tshape\telements\tfragment\t"
				  "rule\n# format\t1\n"
				  "z\tF32\t9000\t9000\t0\trda\n"
				  "b\tF32\t4096\t4096\t0\trda\n"
				  "m\tF32\t5000\t5000\t0\tmean\n"
				  "a\tF32\t77\t77\t0\trda\n"
				  "n\tI32\t2\t2\t0\tlast\n";
enum { LEARNERS = 6, PIECE = 3001 };
static const enum dl_codec codecs[LEARNERS] = {DL_CODEC_F32, DL_CODEC_INT4,
	DL_CODEC_BF16, DL_CODEC_F32, DL_CODEC_INT1, DL_CODEC_INT4};
static const char *const names[LEARNERS] = {
	"ann", "ben", "cia", "dan", "eve", "fay"};

static struct dl_layout layout;
static struct dl_segment *segment;
static size_t segments;
static struct shelf shelf;

/* A push of which nothing has come, and all that will. */
static struct push *begin(struct pushes *s, size_t learner, void **data)
{
	const struct dl_quant q = {
		.codec = codecs[learner], .block = DL_QUANT_BLOCK};
	struct dl_rng r = {dl_rng_key(3, learner), 0};
	size_t n = layout.fragment[0].elements;
	float *delta = dl_alloc_array(n, sizeof *delta);
	struct dl_writer w = DL_WRITER_INIT;
	struct dl_buf b = DL_BUF_INIT;
	struct push *push = NULL;
	struct dl_header h;
	struct dl_err e;

	for (size_t i = 0; i < n; i++)
		delta[i] = (float)(dl_rng_uniform(&r) - 0.5);
	dl_coded_record(&layout, 0, &q, &w);
	dl_writer_finish(&w, &b, NULL);
	dl_writer_release(&w);
	if (dl_header_parse(&h, b.data + 8, b.len - 8, &e) ||
		pushes_begin(s, 0, &h, &push, &e)) {
		printf("Bail out! %s\n", e.text);
		exit(1);
	}
	*data = dl_alloc(push->size);
	dl_coded_encode(NULL, &layout, 0, &q, delta, *data);
	dl_header_release(&h);
	dl_buf_free(&b);
	free(delta);
	return push;
}

struct coming {
	struct push *push;
	void *data;
	size_t bytes;
};

/* The next piece of it; 0 when there is none. */
static int come(struct pushes *s, struct coming *c, size_t n)
{
	size_t left = c->push->size - c->bytes;

	if (!left)
		return 0;
	n = n < left ? n : left;
	memcpy((char *)c->push->data + c->bytes, (char *)c->data + c->bytes, n);
	c->bytes += n;
	arrival_take(s, c->push, c->bytes);
	return 1;
}

/* All pushes come, in pieces, and one more that is cut off. */
static void come_all(
	struct pushes *s, struct coming c[LEARNERS], uint64_t seed, int tell)
{
	struct dl_rng r = {seed, 0};
	struct coming lost;
	int left = LEARNERS;

	for (size_t i = 0; i < LEARNERS; i++) {
		c[i].push = begin(s, i, &c[i].data);
		c[i].bytes = 0;
		if (i == 1)
			lost.push = begin(s, i, &lost.data);
	}
	lost.bytes = 0;
	come(s, &lost, PIECE);
	while (tell && left) {
		size_t i = dl_rng_below(&r, LEARNERS);

		come(s, &c[i], 1 + dl_rng_below(&r, PIECE));
		left = LEARNERS;
		for (size_t k = 0; k < LEARNERS; k++)
			left -= c[k].bytes == c[k].push->size;
	}
	pushes_drop(s, lost.push);
	free(lost.data);
	for (size_t i = 0; i < LEARNERS; i++) {
		memcpy(c[i].push->data, c[i].data, c[i].push->size);
		pushes_arrived(s, c[i].push);
		free(c[i].data);
	}
}

static void gather(struct pushes *s, const struct coming c[LEARNERS],
	struct contributions *out)
{
	struct dl_sync_part part[LEARNERS];
	struct dl_sync_action a = {
		.kind = DL_ACT_MERGE, .part = part, .parts = LEARNERS};

	for (size_t i = 0; i < LEARNERS; i++)
		part[i] = (struct dl_sync_part){
			names[i], c[i].push->id, 1 + (double)i, 1};
	pushes_gather(s, &a, out);
}

static void test_order(uint64_t seed)
{
	const size_t bytes = segments * LEARNERS * LEARNERS * sizeof(double);
	const struct dl_contribution *who[LEARNERS];
	struct coming c[LEARNERS];
	struct contributions all;
	double *want = dl_alloc(bytes);
	struct pushes s;
	int norms = 1;

	pushes_init(&s, NULL, &shelf, &layout, &segment, &segments);
	come_all(&s, c, seed, 1);
	gather(&s, c, &all);
	for (size_t i = 0; i < LEARNERS; i++) {
		who[i] = &all.item[i];
		norms &= c[i].push->norm ==
			 dl_norm_fragment(
				 NULL, segment, segments, who[i]);
	}
	dl_gram(NULL, segment, segments, who, LEARNERS, 1, want);
	ok(norms, "order %d: norms", (int)seed);
	ok(all.products && !memcmp(all.products, want, bytes),
		"order %d: products", (int)seed);
	if (all.products)
		all.products[0] += 1e-12;
	ok(!all.products || memcmp(all.products, want, bytes),
		"another product is noticed");
	pushes_gathered(&s, &all);
	pushes_release(&s);
	free(want);
}

static void test_untold(void)
{
	struct coming c[LEARNERS];
	struct contributions all;
	struct pushes s;

	pushes_init(&s, NULL, &shelf, &layout, &segment, &segments);
	come_all(&s, c, 1, 0);
	gather(&s, c, &all);
	ok(!all.products && c[1].push->norm > 0,
		"who says nothing as they come has a norm and no products");
	pushes_gathered(&s, &all);
	pushes_release(&s);
}

int main(void)
{
	struct dl_err e;

	if (dl_layout_parse(&layout, layout_text, strlen(layout_text), &e)) {
		printf("Bail out! %s\n", e.text);
		return 1;
	}
	segments = segments_cut(&layout, 0, DL_RDA, &segment);
	shelf_init(&shelf, &layout);
	for (uint64_t seed = 1; seed < 6; seed++)
		test_order(seed);
	test_untold();
	shelf_release(&shelf);
	free(segment);
	dl_layout_release(&layout);
	return done_testing();
}
