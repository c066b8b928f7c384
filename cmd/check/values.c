#include "cmd/check/values.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "cmd/learn/fragment.h"

float **values_new(const struct dl_layout *l)
{
	float **v = dl_alloc_array(l->fragments, sizeof *v);

	for (uint32_t p = 0; p < l->fragments; p++)
		v[p] = dl_alloc_array(l->fragment[p].elements, sizeof **v);
	return v;
}

void values_free(const struct dl_layout *l, float **v)
{
	for (uint32_t p = 0; v && p < l->fragments; p++)
		free(v[p]);
	free(v);
}

int values_read(const struct dl_layout *l, float **v, const char *path,
	struct dl_err *e)
{
	int code = 0;

	for (uint32_t p = 0; p < l->fragments && !code; p++)
		code = fragment_read(l, p, v[p], path, e);
	return code;
}

void values_mix(const struct dl_layout *l, float **to, float a, float **from,
	float b, float **other)
{
	for (uint32_t p = 0; p < l->fragments; p++)
		for (size_t i = 0; i < l->fragment[p].elements; i++)
			to[p][i] = a * from[p][i] + b * other[p][i];
}

static int is_float(enum dl_dtype dtype)
{
	return dtype == DL_F64 || dtype == DL_F32 || dtype == DL_F16 ||
	       dtype == DL_BF16;
}

static void draw_tensor(
	const struct dl_layout_tensor *t, float *to, uint64_t seed)
{
	struct dl_rng r = {seed, 0};

	for (size_t i = 0; i < t->elements; i++)
		to[i] = is_float(t->dtype) ? 0.02f * (float)dl_rng_normal(&r)
					   : (float)dl_rng_below(&r, 8);
}

void values_draw(const struct dl_layout *l, float **to, uint64_t seed)
{
	for (size_t i = 0; i < l->tensors; i++) {
		const struct dl_layout_tensor *t = &l->tensor[i];

		if (t->rule != DL_ALIAS)
			draw_tensor(t, to[t->fragment] + t->offset,
				dl_rng_key(seed, i));
	}
}

/* The tensor of fragment p that element i belongs to. */
static const struct dl_layout_tensor *find_tensor(
	const struct dl_layout *l, uint32_t p, size_t i)
{
	const struct dl_layout_fragment *f = &l->fragment[p];

	for (size_t j = f->first; j < f->first + f->tensors; j++) {
		const struct dl_layout_tensor *t = &l->tensor[j];

		if (t->rule != DL_ALIAS && i >= t->offset &&
			i - t->offset < t->elements)
			return t;
	}
	return NULL;
}

static const char *name_of(
	const struct dl_layout_tensor *t, char out[static 80])
{
	return dl_scrub(out, 80, t->name.s, t->name.n);
}

/* How far w may be from what it is in that dtype: trainers may hold what the
 * model holds. */
static float slack(enum dl_dtype dtype, float w, float part)
{
	if (!is_float(dtype))
		return 1;
	if (dtype == DL_BF16)
		part += 1.0f / 128;
	if (dtype == DL_F16)
		part += 1.0f / 1024;
	return part * (fabsf(w) + 0.01f);
}

int values_differ(const struct dl_layout *l, uint32_t p, float **got,
	float **want, float part, struct dl_err *e)
{
	for (size_t i = 0; i < l->fragment[p].elements; i++) {
		float g = got[p][i], w = want[p][i];
		const struct dl_layout_tensor *t;
		char name[80];

		if (g == w)
			continue;
		t = find_tensor(l, p, i);
		if (fabsf(g - w) <= slack(t->dtype, w, part))
			continue;
		dl_fail(e, DL_NO, "\"%s\" holds %.9g where %.9g belongs",
			name_of(t, name), (double)g, (double)w);
		return 1;
	}
	return 0;
}

int values_differ_anywhere(const struct dl_layout *l, float **got, float **want,
	float part, struct dl_err *e)
{
	for (uint32_t p = 0; p < l->fragments; p++)
		if (values_differ(l, p, got, want, part, e))
			return 1;
	return 0;
}

int values_broken(const struct dl_layout *l, float **v, struct dl_err *e)
{
	for (uint32_t p = 0; p < l->fragments; p++)
		for (size_t i = 0; i < l->fragment[p].elements; i++) {
			char name[80];

			if (fabsf(v[p][i]) <= FLT_MAX)
				continue;
			dl_fail(e, DL_NO, "\"%s\" holds %g",
				name_of(find_tensor(l, p, i), name),
				(double)v[p][i]);
			return 1;
		}
	return 0;
}
