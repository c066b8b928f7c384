#include "tensor/packed.h"

#include <stdlib.h>

struct packed {
	const struct dl_layout *layout;
	const float *const *values;
	enum dl_packed_as as;
};

static enum dl_dtype dtype_of(
	const struct packed *k, const struct dl_layout_tensor *t)
{
	return k->as == DL_PACKED_F32 ? DL_F32 : t->dtype;
}

static int fill(void *ctx, size_t handle, uint64_t at, void *block, size_t n,
	struct dl_err *e)
{
	const struct packed *k = ctx;
	const struct dl_layout_tensor *t = &k->layout->tensor[handle];
	enum dl_dtype dtype = dtype_of(k, t);
	size_t width = dl_dtype_bits(dtype) / 8;

	(void)e;
	dl_from_f32(block, k->values[t->fragment] + t->offset + at / width,
		dtype, n / width);
	return 0;
}

int dl_packed_write(const struct dl_layout *l, const float *const *values,
	enum dl_packed_as as, const struct dl_save *s, struct dl_err *e)
{
	struct packed k = {l, values, as};
	struct dl_writer w = DL_WRITER_INIT;
	uint64_t *size = dl_alloc_array(l->tensors, sizeof *size);
	int code;

	dl_writer_meta(&w, "dl.format", "1");
	dl_writer_meta(&w, "dl.kind", "params");
	dl_writer_meta(&w, "dl.layout", l->hash);
	for (size_t i = 0; i < l->tensors; i++) {
		const struct dl_layout_tensor *t = &l->tensor[i];
		enum dl_dtype dtype = dtype_of(&k, t);

		dl_writer_tensor(
			&w, t->name.s, t->name.n, dtype, t->rank, t->shape);
		size[i] = t->elements * (dl_dtype_bits(dtype) / 8);
	}
	code = dl_save(s, &w, size, fill, &k, e);
	free(size);
	return code;
}
