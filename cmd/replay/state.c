#include "cmd/replay/state.h"

#include <inttypes.h>
#include <string.h>

#include "state/saved.h"

void state_begin(struct dl_sync_saved *out, const struct dl_tape_start *start)
{
	struct dl_sync *core =
		start->restored ? dl_sync_restore(&start->config, &start->saved)
				: dl_sync_new(&start->config);

	dl_sync_save(core, UINT32_MAX, out);
	dl_sync_free(core);
}

static void describe(
	struct dl_buf *out, const struct dl_sync_saved *v, int learners)
{
	struct dl_sync_saved shown = *v;

	if (!learners)
		shown.learners = 0;
	dl_saved_write(out, &shown, "");
}

static int same(const struct dl_sync_saved *a, const struct dl_sync_saved *b,
	int learners)
{
	struct dl_buf x = DL_BUF_INIT, y = DL_BUF_INIT;
	int same;

	describe(&x, a, learners);
	describe(&y, b, learners);
	same = x.len == y.len && !memcmp(x.data, y.data, x.len);
	dl_buf_free(&x);
	dl_buf_free(&y);
	return same;
}

static int differ(uint32_t p, struct dl_version was, struct dl_version is,
	struct dl_err *e)
{
	return dl_fail(e, DL_NO,
		"fragment %u, version %" PRIu64 ".%" PRIu64
		": the syncer went on from that, and the tape has led to "
		"%" PRIu64 ".%" PRIu64,
		p, was.epoch, was.number, is.epoch, is.number);
}

int state_check(const struct dl_sync_saved *here,
	const struct dl_tape_start *start, struct dl_err *e)
{
	const struct dl_sync_saved *then = &start->saved;

	if (!start->restored || then->fragments != here->fragments)
		return dl_fail(e, DL_DATA, "another run begins here");
	for (uint32_t p = 0; p < here->fragments; p++) {
		struct dl_version was = then->fragment[p].version;
		struct dl_version is = here->fragment[p].version;

		if (dl_version_cmp(was, is))
			return differ(p, was, is, e);
	}
	if (!same(here, then, !start->config.passes))
		return dl_fail(e, DL_NO,
			"the syncer went on from another state than the tape "
			"has led to");
	return 0;
}
