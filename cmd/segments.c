#include "cmd/segments.h"

size_t segments_cut(const struct dl_layout *l, uint32_t p, enum dl_rule rda,
	struct dl_segment **out)
{
	const struct dl_layout_fragment *f = &l->fragment[p];
	size_t n = 0;

	*out = dl_alloc_array(f->tensors, sizeof **out);
	for (size_t i = f->first; i < f->first + f->tensors; i++) {
		const struct dl_layout_tensor *t = &l->tensor[i];

		if (t->rule != DL_ALIAS)
			(*out)[n++] = (struct dl_segment){t->offset,
				t->elements, t->rule == DL_RDA ? rda : t->rule};
	}
	return n;
}
