#include "cmd/join/checkpoint.h"

#include <stdlib.h>

#include "state/checkpoint.h"
#include "tensor/packed.h"

int join_checkpoint(const char *path, const struct dl_save *s, struct dl_err *e)
{
	struct dl_layout l = {.tensors = 0};
	float **values = NULL;
	int code = dl_save_check(s, e);

	if (!code)
		code = dl_checkpoint_read(path, &l, &values, e);
	if (!code)
		code = dl_packed_write(
			&l, (const float *const *)values, DL_PACKED_OWN, s, e);
	for (uint32_t p = 0; values && p < l.fragments; p++)
		if (values[p])
			dl_big_free(values[p],
				l.fragment[p].elements * sizeof(float));
	free(values);
	dl_layout_release(&l);
	return code;
}
