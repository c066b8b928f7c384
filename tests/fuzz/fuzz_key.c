/*
 * Any text as a key, and any file as a key's: refused, or one key in its one
 * spelling.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "fuzz.h"
#include "link/key.h"

/* Whether a file of these bytes is a key's. */
static int is_file(const uint8_t *data, size_t n, unsigned char secret[DL_KEY])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct dl_err e = {0};
	struct dl_key *k;
	char path[32];
	int code;

	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	if (fchmod(fd, 0600) || pwrite(fd, data, n, 0) != (ssize_t)n)
		abort();
	code = dl_key_read(&k, path, &e); /* closes it */
	if (code && (code != DL_DATA || e.code != DL_DATA || !e.text[0] || k))
		abort();
	if (!code)
		memcpy(secret, k->secret, DL_KEY);
	dl_key_free(k);
	return !code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	unsigned char key[DL_KEY], secret[DL_KEY];
	char text[DL_KEY_TEXT + 1];
	size_t line = n && data[n - 1] == '\n' ? n - 1 : n;
	struct dl_err e = {0};
	int code = dl_key_parse(key, (const char *)data, line, &e);

	if (sodium_init() < 0 || (code && (code != DL_DATA || !e.text[0])))
		abort();
	if (is_file(data, n, secret) != !code)
		abort();
	if (!code && (memcmp(secret, key, DL_KEY) != 0 || line != DL_KEY_TEXT ||
			     memcmp(dl_key_print(text, key), data, line) != 0))
		abort();
	return 0;
}
