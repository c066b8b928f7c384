/*
 * spool_reader SPOOL STOP
 *
 * Reads the newest versions of a spool over and over, as learners do, until the
 * file STOP is there: under a shared lock, and with another look at latest when
 * a version is gone. Prints how many it read; 1 when one was not what latest
 * says, or was removed under its lock.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link/spool.h"
#include "link/spool_file.h"

static unsigned long reads, gone;

static int fail(const char *path, const char *what)
{
	printf("%s: %s\n", path, what);
	return 1;
}

static int read_one(int spool, uint32_t p, const struct dl_spool_global *row)
{
	char name[DL_SPOOL_NAME], path[DL_SPOOL_NAME + 8], hash[DL_HASH_HEX];
	struct stat st;
	struct dl_err e;
	int fd, code;

	snprintf(path, sizeof path, "global/%s",
		dl_spool_version_name(name, p, row->version));
	code = dl_spool_open_locked(spool, path, &fd, &st, &e);
	if (code == DL_NOINPUT) {
		gone++;
		return 0;
	}
	if (code)
		return fail(path, e.text);
	code = dl_spool_hash(fd, row->bytes, hash, &e);
	if (!code && strcmp(hash, row->hash) != 0)
		code = fail(path, "other bytes");
	if (fstat(fd, &st) || !st.st_nlink)
		code = fail(path, "removed under its lock");
	close(fd);
	reads++;
	return code;
}

static int read_all(int spool)
{
	struct dl_buf text = DL_BUF_INIT;
	struct dl_spool_latest v = {0};
	struct dl_err e;
	int code = dl_spool_read(spool, "global/latest", 1 << 20, &text, &e);

	if (!code)
		code = dl_spool_latest_parse(&v, text.data, text.len, &e);
	if (code)
		fail("global/latest", e.text);
	for (uint32_t p = 0; !code && p < v.fragments; p++)
		code = read_one(spool, p, v.fragment + p);
	dl_spool_latest_release(&v);
	dl_buf_free(&text);
	return code;
}

int main(int argc, char **argv)
{
	struct dl_err e;
	int spool, code = 0;

	if (argc != 3 || dl_spool_open(argv[1], &spool, &e))
		return 64;
	while (!code && access(argv[2], F_OK))
		code = read_all(spool);
	printf("%lu read, %lu were gone\n", reads, gone);
	return code ? 1 : 0;
}
