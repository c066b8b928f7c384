/*
 * Any text as an address: refused with 64 and a text, or printed as one that
 * means the same.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fuzz.h"
#include "link/address.h"

/* Commands and folders are shown, cut and scrubbed, not spelled again. */
static void check_print(const struct dl_address *a)
{
	char once[DL_ADDRESS_MAX], twice[DL_ADDRESS_MAX];
	struct dl_address again;

	dl_address_print(once, a);
	if (a->kind == DL_LINK_EXEC || a->kind == DL_LINK_DIR)
		return;
	if (dl_address_parse(&again, once, NULL) || again.kind != a->kind ||
		strcmp(again.host, a->host) != 0 ||
		strcmp(again.port, a->port) != 0 ||
		strcmp(again.path, a->path) != 0 ||
		again.keyed != a->keyed ||
		memcmp(again.key, a->key, sizeof(a->key)) != 0 ||
		strcmp(dl_address_print(twice, &again), once) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *s = dl_strndup((const char *)data, n);
	struct dl_err e = {0};
	struct dl_address a;
	int code = dl_address_parse(&a, s, &e);

	if (!code)
		check_print(&a);
	else if (code != DL_USAGE || e.code != DL_USAGE || !e.text[0])
		abort();
	free(s);
	return 0;
}
