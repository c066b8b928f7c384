/*
 * --key: a program's own key, for sessions.
 */
#ifndef CMD_KEY_H
#define CMD_KEY_H

#include "link/address.h"

/*
 * Reads the key file that --key named, if not NULL, for the n addresses at a:
 * it is own of those that begin sessions, which are tcp, with the other's key
 * where we connect (they may all be NULL, 0). Exits: 64 when the file is of no
 * use, or missing where one is needed; else with dl_key_read's code. The key is
 * to be freed at the end; NULL is none.
 */
struct dl_key *key_use(const char *file, struct dl_address *a, size_t n);
/* The same of a program that meets peers too, with that key: a link may be of a
 * unix socket then. */
struct dl_key *key_use_with_peers(
	const char *file, struct dl_address *a, size_t n);
struct dl_key *key_use_to_listen(
	const char *file, struct dl_address *a, size_t n);

#endif
