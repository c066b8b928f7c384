#include "tensor/layout.h"

#include <string.h>

int dl_layout_same_shape(
	const struct dl_layout_tensor *t, const struct dl_tensor *other)
{
	return t->rank == other->rank &&
	       !memcmp(t->shape, other->shape, t->rank * sizeof *t->shape);
}

int dl_layout_match(
	const struct dl_layout *l, const struct dl_model *m, struct dl_err *e)
{
	char name[80];

	for (size_t i = 0; i < l->tensors; i++) {
		const struct dl_layout_tensor *t = &l->tensor[i];
		const struct dl_model_tensor *found =
			dl_model_find(m, t->name.s, t->name.n);

		dl_scrub(name, sizeof name, t->name.s, t->name.n);
		if (!found)
			return dl_fail(e, DL_DATA,
				"tensor \"%s\" of the layout is missing", name);
		if (!dl_layout_same_shape(t, &found->info))
			return dl_fail(e, DL_DATA,
				"tensor \"%s\" has another shape than in the "
				"layout",
				name);
		if (t->dtype != found->info.dtype)
			return dl_fail(e, DL_DATA,
				"tensor \"%s\" is %s, in the layout %s", name,
				dl_dtype_name(found->info.dtype),
				dl_dtype_name(t->dtype));
	}
	return 0;
}

void dl_layout_record(
	const struct dl_layout *l, uint32_t p, struct dl_writer *w)
{
	const struct dl_layout_fragment *f = &l->fragment[p];

	for (size_t i = f->first; i < f->first + f->tensors; i++) {
		const struct dl_layout_tensor *t = &l->tensor[i];

		if (t->rule != DL_ALIAS)
			dl_writer_tensor(w, t->name.s, t->name.n, DL_F32,
				t->rank, t->shape);
	}
}

int dl_layout_check_record(const struct dl_layout *l, uint32_t p,
	const struct dl_header *h, struct dl_err *e)
{
	const struct dl_layout_fragment *f = &l->fragment[p];
	size_t own = 0;
	char name[80];

	for (size_t i = f->first; i < f->first + f->tensors; i++) {
		const struct dl_layout_tensor *t = &l->tensor[i];
		const struct dl_tensor *found;

		if (t->rule == DL_ALIAS)
			continue;
		own++;
		found = dl_header_find(h, t->name.s, t->name.n);
		dl_scrub(name, sizeof name, t->name.s, t->name.n);
		if (!found)
			return dl_fail(e, DL_DATA,
				"tensor \"%s\" of fragment %u is missing", name,
				p);
		if (found->dtype != DL_F32)
			return dl_fail(
				e, DL_DATA, "tensor \"%s\" is not F32", name);
		if (!dl_layout_same_shape(t, found))
			return dl_fail(e, DL_DATA,
				"tensor \"%s\" has another shape than in the "
				"layout",
				name);
		if (found->offset != t->offset * sizeof(float))
			return dl_fail(e, DL_DATA,
				"tensor \"%s\" is out of order", name);
	}
	if (h->tensors != own)
		return dl_fail(e, DL_DATA,
			"%zu tensors, but fragment %u has %zu", h->tensors, p,
			own);
	return 0;
}
