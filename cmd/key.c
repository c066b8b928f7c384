#include "cmd/key.h"

#include <stdlib.h>

#include <sodium.h>

#include "cmd/cmd.h"

/* Who has it in an address tells everybody. It is not shown once more. */
static void check_pin(const struct dl_key *own, const struct dl_address *a)
{
	if (own && a->keyed && !sodium_memcmp(own->secret, a->key, DL_KEY))
		cmd_usage("the link has our secret key in place of the "
			  "syncer's public one");
}

static struct dl_key *use(
	const char *file, struct dl_address *a, size_t n, int keyed)
{
	struct dl_key *key = NULL;
	struct dl_err e;

	if (file && dl_key_read(&key, file, &e))
		exit(cmd_fail(&e));
	for (size_t i = 0; i < n; i++) {
		check_pin(key, &a[i]);
		if (a[i].kind == DL_LINK_TCP && a[i].keyed == keyed)
			a[i].own = key;
	}
	return key;
}

struct dl_key *key_use_with_peers(
	const char *file, struct dl_address *a, size_t n)
{
	int sessions = 0;

	for (size_t i = 0; i < n; i++)
		sessions |= a[i].kind != DL_LINK_UNIX;
	return sessions ? key_use(file, a, n) : use(file, a, n, 1);
}

struct dl_key *key_use(const char *file, struct dl_address *a, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += (size_t)a[i].keyed;
	if (file && !found)
		cmd_usage("--key: for tcp:KEY@HOST:PORT only");
	if (found && !file)
		cmd_usage("a session needs --key");
	return use(file, a, n, 1);
}

struct dl_key *key_use_to_listen(
	const char *file, struct dl_address *a, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		if (a[i].keyed)
			cmd_usage("--listen: the key there is ours, --key");
		found += a[i].kind == DL_LINK_TCP;
	}
	if (file && !found)
		cmd_usage("--key: for tcp only");
	return use(file, a, n, 0);
}
