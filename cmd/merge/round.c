#include "cmd/merge/round.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/segments.h"
#include "merge/outer.h"

/* What one learner brings. */
struct round_part {
	struct dl_buf data;    /* of its delta, as it came */
	struct dl_coded coded; /* reads it */
	int open;
	struct dl_buf sum; /* of several pushes: floats */
};

void round_init(struct round *r, const struct base *b, const struct deltas *d,
	const struct merge_options *o)
{
	*r = (struct round){.base = b, .options = o};
	r->pool = dl_pool_new(o->threads);
	for (uint32_t p = 0; p < b->layout.fragments; p++) {
		const struct delta *first;
		size_t bytes = b->layout.fragment[p].elements * sizeof(float);
		size_t n = deltas_of(d, p, &first);

		if (b->fragment[p].held && bytes > r->bytes)
			r->bytes = bytes;
		if (n > r->parts)
			r->parts = n;
	}
	r->theta = dl_big_alloc(r->bytes);
	r->momentum = dl_big_alloc(r->bytes);
	r->update = dl_big_alloc(r->bytes);
	r->part = dl_alloc_array(r->parts, sizeof *r->part);
}

static void close_part(struct round_part *part)
{
	if (part->open)
		dl_coded_release(&part->coded);
	part->open = 0;
}

void round_release(struct round *r)
{
	for (size_t i = 0; i < r->parts; i++) {
		close_part(&r->part[i]);
		dl_buf_free(&r->part[i].data);
		dl_buf_free(&r->part[i].sum);
	}
	free(r->part);
	dl_big_free(r->theta, r->bytes);
	dl_big_free(r->momentum, r->bytes);
	dl_big_free(r->update, r->bytes);
	dl_pool_free(r->pool);
}

/* Reads the data of d, which part decodes from then on. */
static int load(const struct round *r, struct round_part *part,
	const struct delta *d, struct dl_err *e)
{
	const struct dl_records_entry *entry = delta_entry(d);
	size_t n = entry->header.data_size;

	close_part(part);
	dl_buf_clear(&part->data);
	dl_buf_reserve_exact(&part->data, n);
	if (dl_records_read(d->file, entry->at, part->data.data, n, e))
		return e->code;
	part->open = 1;
	return dl_coded_open(&part->coded, &r->base->layout, d->fragment,
		&entry->header, part->data.data, e);
}

static int check_block(const struct dl_layout_tensor *t, size_t offset,
	const float *block, size_t n, struct dl_err *e)
{
	size_t bad = dl_find_nonfinite(block, n);
	char name[80];

	return bad == n ? 0
			: dl_fail(e, DL_DATA,
				  "tensor \"%s\": element %zu is not finite",
				  dl_scrub(name, sizeof name, t->name.s,
					  t->name.n),
				  offset - t->offset + bad);
}

/* Checks all values of part; adds them to sum unless that is NULL. */
static int check_values(const struct round *r, const struct round_part *part,
	uint32_t p, float *sum, struct dl_err *e)
{
	const struct dl_layout *l = &r->base->layout;
	const struct dl_layout_fragment *f = &l->fragment[p];
	float block[DL_MERGE_BLOCK];

	for (size_t i = f->first; i < f->first + f->tensors; i++) {
		const struct dl_layout_tensor *t = &l->tensor[i];
		size_t end = t->offset + t->elements, n;

		if (t->rule == DL_ALIAS)
			continue;
		for (size_t at = t->offset; at < end; at += n) {
			n = end - at < DL_MERGE_BLOCK ? end - at
						      : DL_MERGE_BLOCK;
			dl_coded_read(&part->coded, at, n, block);
			if (check_block(t, at, block, n, e))
				return e->code;
			if (sum)
				dl_merge_add(sum + at, 1, block, n);
		}
	}
	return 0;
}

/* The n > 1 pushes of one learner, in order, become one delta, in part->sum. */
static int add_up(const struct round *r, struct round_part *part,
	const struct delta *d, size_t n, struct dl_err *e)
{
	size_t elements = r->base->layout.fragment[d->fragment].elements;
	float *sum;

	dl_buf_clear(&part->sum);
	dl_buf_reserve_exact(&part->sum, elements * sizeof *sum);
	sum = (float *)(void *)part->sum.data;
	/* To which even -0 can be added without a change. */
	for (size_t i = 0; i < elements; i++)
		sum[i] = -0.0f;
	for (size_t i = 0; i < n; i++)
		if (load(r, part, &d[i], e) ||
			check_values(r, part, d->fragment, sum, e))
			return delta_at(&d[i], e);
	return 0;
}

/* What is known of its work, or what -w says; else all weigh the same. */
static int weigh(const struct round *r, const struct delta *d, size_t n,
	int counted, double *weight, struct dl_err *e)
{
	uint64_t steps = 0, tokens = 0;
	const struct delta *unknown = NULL;

	for (size_t i = 0; i < r->options->weights; i++) {
		const struct merge_weight *w = &r->options->weight[i];

		if (strcmp(w->name, d->name))
			continue;
		*weight = w->weight;
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		steps += d[i].steps;
		tokens += d[i].tokens;
		if (!d[i].counted)
			unknown = &d[i];
	}
	*weight = counted ? dl_merge_weight(tokens, steps) : 1;
	if (!counted || !unknown)
		return 0;
	dl_fail(e, DL_DATA,
		"no dl.steps and dl.tokens, which others have (see -w)");
	return delta_at(unknown, e);
}

/* The contribution of the learner of n deltas. */
static int take_part(struct round *r, struct round_part *part,
	const struct delta *d, size_t n, int counted, struct dl_contribution *c,
	struct dl_err *e)
{
	*c = (struct dl_contribution){.name = d->name, .scale = 1};
	if (weigh(r, d, n, counted, &c->weight, e))
		return e->code;
	if (n > 1) {
		if (add_up(r, part, d, n, e))
			return e->code;
		c->delta = (const float *)(const void *)part->sum.data;
		return 0;
	}
	if (load(r, part, d, e) || check_values(r, part, d->fragment, NULL, e))
		return delta_at(d, e);
	c->read = dl_coded_read;
	c->codes = dl_coded_codes;
	c->ctx = &part->coded;
	return 0;
}

/* Groups n deltas by learner; returns how many there are. */
static int take_parts(struct round *r, const struct delta *d, size_t n,
	struct dl_contribution *c, size_t *parts, struct dl_err *e)
{
	int counted = 0, rc = 0;

	for (size_t i = 0; i < n; i++)
		counted |= d[i].counted;
	*parts = 0;
	for (size_t i = 0, end; !rc && i < n; i = end) {
		for (end = i + 1; end < n; end++)
			if (strcmp(d[end].name, d[i].name))
				break;
		rc = take_part(r, &r->part[*parts], d + i, end - i, counted,
			&c[*parts], e);
		++*parts;
	}
	return rc;
}

static void show(const struct round *r, uint32_t p,
	const struct dl_contribution *c, const struct dl_share *share, size_t n)
{
	char name[80];

	for (size_t i = 0; i < n; i++)
		fprintf(stderr, "%u\t%s\t%.6f\t%.6g\t%.6f\n",
			r->base->fragment[p].number,
			dl_scrub(name, sizeof name, c[i].name,
				strlen(c[i].name)),
			share[i].weight, share[i].norm, share[i].cosine);
}

int round_merge(struct round *r, uint32_t p, const struct delta *d, size_t n,
	struct dl_err *e)
{
	struct dl_contribution *c = dl_alloc_array(n, sizeof *c);
	struct dl_share *share = dl_alloc_array(n, sizeof *share);
	struct dl_segment *segment;
	size_t segments = segments_cut(
		       &r->base->layout, p, r->options->rule, &segment),
	       parts;
	int rc = take_parts(r, d, n, c, &parts, e);

	if (!rc)
		rc = dl_merge_fragment(r->pool, segment, segments, c, parts,
			r->update, cmd_verbosity > 0 ? share : NULL, e);
	if (!rc && cmd_verbosity > 0)
		show(r, p, c, share, parts);
	free(segment);
	free(share);
	free(c);
	return rc;
}

/* What a step made of fragment p; tied tensors have no part in it. */
static int check_step(const struct round *r, uint32_t p, const float *packed,
	struct dl_err *e)
{
	const struct dl_layout *l = &r->base->layout;
	const struct dl_layout_fragment *f = &l->fragment[p];
	int rc = 0;

	for (size_t i = f->first; !rc && i < f->first + f->tensors; i++) {
		const struct dl_layout_tensor *t = &l->tensor[i];

		if (t->rule != DL_ALIAS)
			rc = check_block(t, t->offset, packed + t->offset,
				t->elements, e);
	}
	return rc ? dl_at(e, "outer step") : 0;
}

int round_step(struct round *r, uint32_t p, struct dl_err *e)
{
	struct dl_segment *segment;
	size_t segments =
		segments_cut(&r->base->layout, p, r->options->rule, &segment);

	dl_outer_step(r->pool, &r->options->outer, segment, segments, r->update,
		r->theta, r->momentum);
	free(segment);
	return check_step(r, p, r->theta, e) ||
			       (r->options->outer.mu != 0 &&
				       check_step(r, p, r->momentum, e))
		       ? e->code
		       : 0;
}
