/*
 * The values that a spool publishes, and the updates that led there, read and
 * checked.
 */
#ifndef DL_LINK_SPOOL_VALUES_H
#define DL_LINK_SPOOL_VALUES_H

#include "link/spool.h"
#include "tensor/coded.h"

/*
 * Fragment p at the version that a row of global/latest has, into values, its
 * packed array. 66 when it is not there any more; 65 when it is not what latest
 * says, or not yet, while somebody copies it; 74. The file is kept from being
 * removed meanwhile.
 */
int dl_spool_read_values(int spool, const struct dl_layout *l, uint32_t p,
	const struct dl_spool_global *what, float *values, struct dl_err *e);

/*
 * The update of that row, which has one, likewise: its data into data (cleared
 * first), and update opened on them; release it also after a failure.
 */
int dl_spool_read_update(int spool, const struct dl_layout *l, uint32_t p,
	const struct dl_spool_global *what, struct dl_buf *data,
	struct dl_coded *update, struct dl_err *e);

#endif
