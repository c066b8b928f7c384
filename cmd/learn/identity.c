#include "cmd/learn/identity.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cmd/learn/learner.h"

/* Learners must not train on the same data: the number at the end of the name,
 * or else a number made of the name. */
static uint64_t default_slot(const char *name)
{
	size_t n = strlen(name), at = n;
	struct dl_hash h;
	char hex[DL_HASH_HEX];

	while (at && isdigit((unsigned char)name[at - 1]))
		at--;
	if (at < n && n - at < 10)
		return strtoull(name + at, NULL, 10);
	dl_hash_init(&h);
	dl_hash_add(&h, name, n);
	dl_hash_hex(&h, hex);
	hex[7] = '\0';
	return strtoull(hex, NULL, 16);
}

void identity_begin(struct learner *l)
{
	strcpy(l->name, l->options->name);
}

int identity_take(
	struct learner *l, const struct dl_message *m, struct dl_err *e)
{
	const char *name = m->name && *m->name ? m->name : l->name;

	if (!*name)
		return dl_fail(e, DL_PROTOCOL, "welcome says no name");
	if (l->core && strcmp(name, l->name) != 0)
		return dl_fail(e, DL_PROTOCOL, "calls %s %s", l->name, name);
	if (l->core)
		return 0;
	if (name != l->name)
		strcpy(l->name, name);
	l->slot = l->options->slot;
	if (l->slot == DL_SLOT_NONE)
		l->slot = m->slot;
	if (l->slot == DL_SLOT_NONE)
		l->slot = default_slot(l->name);
	return 0;
}
