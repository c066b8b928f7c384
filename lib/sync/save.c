/* What outlives the process: taking it out of a core and back into one. */
#include "sync/core.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void save_fragment(const struct dl_sync *s, uint32_t p, int committed,
	struct dl_sync_saved_fragment *out)
{
	const struct fragment *f = &s->fragment[p];

	out->version = f->version;
	out->step = f->settled;
	if (committed) {
		out->version = (struct dl_version){s->epoch,
			f->version.number + 1};
		out->step = f->step;
	}
	out->norms = f->norms;
	memcpy(out->norm, f->norm, sizeof f->norm);
}

static void save_instance(const struct dl_sync *s, const struct learner *l,
	const struct instance *in, struct dl_sync_saved_learner *out)
{
	memcpy(out->name, l->name, sizeof out->name);
	out->instance = in->id;
	out->merged = dl_alloc_array(s->fragments, sizeof *out->merged);
	for (uint32_t p = 0; p < s->fragments; p++)
		out->merged[p] = in->last[p].merged;
}

/* The merge of p in hand consumes its pushes. */
static void save_merge(const struct dl_sync *s, uint32_t p,
	struct dl_sync_saved *v)
{
	const struct pushes *merge = &s->fragment[p].merge;

	for (size_t i = 0; i < merge->n; i++)
		for (size_t k = 0; k < v->learners; k++)
			if (v->learner[k].instance == merge->item[i].instance
				&& !strcmp(v->learner[k].name,
					merge->item[i].from->name)
				&& v->learner[k].merged[p] < merge->item[i].seq)
				v->learner[k].merged[p] = merge->item[i].seq;
}

void dl_sync_save(const struct dl_sync *s, uint32_t p,
	struct dl_sync_saved *out)
{
	size_t n = 0;

	*out = (struct dl_sync_saved){
		.epoch = s->epoch,
		.clock = s->clock,
		.tokens = s->tokens,
		.fragments = s->fragments,
	};
	out->fragment = dl_alloc_array(s->fragments, sizeof *out->fragment);
	for (uint32_t i = 0; i < s->fragments; i++)
		save_fragment(s, i, i == p, &out->fragment[i]);
	for (size_t i = 0; i < s->learners; i++)
		n += s->learner[i]->instances;
	out->learner = dl_alloc_array(n, sizeof *out->learner);
	for (size_t i = 0; i < s->learners; i++)
		for (size_t k = 0; k < s->learner[i]->instances; k++)
			save_instance(s, s->learner[i],
				&s->learner[i]->instance[k],
				&out->learner[out->learners++]);
	if (p < s->fragments)
		save_merge(s, p, out);
}

void dl_sync_saved_release(struct dl_sync_saved *v)
{
	for (size_t i = 0; i < v->learners; i++)
		free(v->learner[i].merged);
	free(v->learner);
	free(v->fragment);
	*v = (struct dl_sync_saved){0};
}

static void *copy(const void *p, size_t n, size_t size)
{
	void *out = dl_alloc_array(n, size);

	if (n)
		memcpy(out, p, n * size);
	return out;
}

void dl_sync_saved_copy(const struct dl_sync_saved *v,
	struct dl_sync_saved *out)
{
	*out = *v;
	out->fragment = copy(v->fragment, v->fragments, sizeof *v->fragment);
	out->learner = copy(v->learner, v->learners, sizeof *v->learner);
	for (size_t i = 0; i < v->learners; i++)
		out->learner[i].merged = copy(v->learner[i].merged,
			v->fragments, sizeof *v->learner[i].merged);
}

void dl_sync_saved_settle(struct dl_sync_saved *v, const char *name,
	uint64_t instance, uint32_t p, uint64_t seq)
{
	struct dl_sync_saved_learner *l = v->learner;
	struct dl_sync_saved_learner *end = l + v->learners;

	while (l < end && (l->instance != instance || strcmp(l->name, name)))
		l++;
	if (l == end) {
		v->learner = dl_resize(v->learner, v->learners + 1, sizeof *l);
		l = &v->learner[v->learners++];
		*l = (struct dl_sync_saved_learner){.instance = instance};
		memcpy(l->name, name, strlen(name) + 1);
		l->merged = dl_alloc_array(v->fragments, sizeof *l->merged);
	}
	if (l->merged[p] < seq)
		l->merged[p] = seq;
}

struct dl_sync *dl_sync_restore(const struct dl_sync_config *c,
	const struct dl_sync_saved *v)
{
	struct dl_sync *s = dl_sync_new(c);

	s->epoch = v->epoch + 1;
	s->clock = v->clock;
	s->tokens = v->tokens;
	for (uint32_t p = 0; p < s->fragments; p++) {
		struct fragment *f = &s->fragment[p];

		f->origin = v->fragment[p].version;
		f->version = (struct dl_version){s->epoch, f->origin.number};
		f->step = f->settled = f->considered = v->fragment[p].step;
		f->norms = v->fragment[p].norms;
		memcpy(f->norm, v->fragment[p].norm, sizeof f->norm);
		sort_norms(f);
	}
	for (size_t i = 0; i < v->learners; i++) {
		struct learner *l = make_learner(s, v->learner[i].name);
		struct instance *in =
			make_instance(s, l, v->learner[i].instance);

		s->aways += !l->away;
		l->away = 1;
		for (uint32_t p = 0; p < s->fragments; p++)
			in->last[p].taken = in->last[p].merged =
				v->learner[i].merged[p];
	}
	return s;
}
