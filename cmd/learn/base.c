#include "cmd/learn/base.h"

#include <stdlib.h>
#include <string.h>

void weights_expect_updates(struct weights *w, int expect)
{
	if (expect && !w->base)
		w->base = dl_alloc_array(w->layout->fragments, sizeof *w->base);
	if (expect || !w->base)
		return;
	for (uint32_t p = 0; p < w->layout->fragments; p++)
		shelf_give(&w->shelf, p, w->base[p].values);
	free(w->base);
	w->base = NULL;
}

/* What was called so in a history that the syncer has lost is nothing that its
 * updates can start from. */
static void rename_base(
	struct base *base, struct dl_version origin, struct dl_version version)
{
	if (!dl_version_cmp(base->version, origin))
		base->version = version;
	if (dl_version_cmp(base->version, version) > 0)
		base->version = (struct dl_version){0, 0};
}

void weights_rename(struct weights *w, const struct dl_version *origins,
	const struct dl_version *versions)
{
	for (uint32_t p = 0; p < w->layout->fragments; p++) {
		struct came *came = &w->came[p];

		if (w->base)
			rename_base(&w->base[p], origins[p], versions[p]);
		if (!came->values ||
			dl_version_cmp(came->version, versions[p]) <= 0)
			continue;
		shelf_give(&w->shelf, p, came->values);
		came->values = NULL;
	}
}

void base_came(struct weights *w, uint32_t p, struct dl_version version,
	const float *values)
{
	struct base *base = w->base ? &w->base[p] : NULL;

	if (!base || dl_version_cmp(version, base->version) < 0)
		return;
	if (!base->values)
		base->values = shelf_take(&w->shelf, p);
	memcpy(base->values, values, shelf_bytes(&w->shelf, p));
	base->version = version;
	base->asked = 0;
}

enum update_use weights_judge_update(struct weights *w, uint32_t p,
	struct dl_version from, struct dl_version version)
{
	struct base *base = w->base ? &w->base[p] : NULL;

	if (!base)
		return UPDATE_ASKED;
	if (base->values && dl_version_cmp(version, base->version) <= 0)
		return UPDATE_KNOWN;
	if (base->values && !dl_version_cmp(from, base->version))
		return UPDATE_ADD;
	if (base->asked)
		return UPDATE_ASKED;
	base->asked = 1;
	return UPDATE_ASK;
}

void weights_add_update(struct weights *w, uint32_t p,
	struct dl_version version, const struct dl_coded *update)
{
	float *values = shelf_take(&w->shelf, p);
	const float *base = w->base[p].values;

	dl_coded_decode(NULL, update, values);
	for (size_t i = 0; i < update->elements; i++)
		values[i] += base[i];
	weights_came(w, p, version, values);
}

void weights_forget_asked(struct weights *w)
{
	for (uint32_t p = 0; w->base && p < w->layout->fragments; p++)
		w->base[p].asked = 0;
}
