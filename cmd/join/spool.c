#include "cmd/join/spool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link/spool_file.h"
#include "link/spool_values.h"

/* A run goes on meanwhile, and old values are removed: so often latest is read
 * again before they are said to be missing. */
enum { TRIES = 5, LAYOUT_MAX = 256 << 20 };

static int read_latest(
	int spool, struct dl_spool_latest *latest, struct dl_err *e)
{
	struct dl_buf text = DL_BUF_INIT;
	int code = dl_spool_read(
		spool, "global/latest", DL_SPOOL_TEXT_MAX, &text, e);

	if (!code && dl_spool_latest_parse(latest, text.data, text.len, e))
		code = dl_at(e, "global/latest");
	dl_buf_free(&text);
	return code;
}

static int read_layout(int spool, const struct dl_spool_latest *latest,
	struct dl_layout *l, struct dl_err *e)
{
	struct dl_buf text = DL_BUF_INIT;
	int code = dl_spool_read(spool, "layout.tsv", LAYOUT_MAX, &text, e);

	if (!code)
		code = dl_layout_parse(l, (char *)text.data, text.len, e);
	if (!code && strcmp(l->hash, latest->layout) != 0)
		code = dl_fail(e, DL_DATA, "not that of global/latest");
	if (!code && l->fragments != latest->fragments)
		code = dl_fail(e, DL_DATA, "not as many fragments as latest");
	dl_buf_free(&text);
	return code == DL_DATA ? dl_at(e, "layout.tsv") : code;
}

/* Those that were read before are read again only if they are older. */
static int read_values(int spool, const struct dl_layout *l,
	const struct dl_spool_latest *latest, struct dl_version *have,
	float **values, struct dl_err *e)
{
	int code = 0;

	for (uint32_t p = 0; p < l->fragments && !code; p++) {
		const struct dl_spool_global *what = &latest->fragment[p];

		if (!dl_version_cmp(have[p], what->version))
			continue;
		if (!values[p])
			values[p] = dl_big_alloc(
				l->fragment[p].elements * sizeof(float));
		code = dl_spool_read_values(spool, l, p, what, values[p], e);
		if (!code)
			have[p] = what->version;
	}
	return code;
}

static int read_all(
	int spool, struct dl_layout *l, float ***values, struct dl_err *e)
{
	struct dl_spool_latest latest = {0};
	struct dl_version *have = NULL;
	int code = DL_NOINPUT;

	for (int i = 0; i < TRIES && code == DL_NOINPUT; i++) {
		dl_spool_latest_release(&latest);
		code = read_latest(spool, &latest, e);
		if (code)
			break;
		if (!*values) {
			code = read_layout(spool, &latest, l, e);
			if (code)
				break;
			*values = dl_alloc_array(l->fragments, sizeof **values);
			have = dl_alloc_array(l->fragments, sizeof *have);
		}
		code = latest.fragments == l->fragments
			       ? read_values(
					 spool, l, &latest, have, *values, e)
			       : dl_fail(e, DL_DATA, "now has another run");
	}
	free(have);
	dl_spool_latest_release(&latest);
	return code;
}

int join_spool(const char *folder, struct dl_layout *l, float ***values,
	struct dl_err *e)
{
	int spool, code = dl_spool_open(folder, &spool, e);

	if (code)
		return code;
	code = read_all(spool, l, values, e);
	close(spool);
	return code ? dl_at(e, "%s", folder) : 0;
}
