#include "link/key.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "base/file.h"
#include "base/num.h"

void dl_key_make(struct dl_key *k)
{
	randombytes_buf(k->secret, sizeof k->secret);
	crypto_scalarmult_base(k->public, k->secret);
}

static int alloc(struct dl_key **k, struct dl_err *e)
{
	*k = sodium_malloc(sizeof **k);
	return *k ? 0 : dl_fail_sys(e, DL_OSERR, "memory for a key");
}

int dl_key_new(struct dl_key **k, struct dl_err *e)
{
	int rc = alloc(k, e);

	if (!rc)
		dl_key_make(*k);
	return rc;
}

void dl_key_free(struct dl_key *k)
{
	sodium_free(k);
}

char *dl_key_print(char out[DL_KEY_TEXT + 1], const unsigned char key[DL_KEY])
{
	return sodium_bin2base64(out, DL_KEY_TEXT + 1, key, DL_KEY,
		sodium_base64_VARIANT_ORIGINAL);
}

/* libsodium takes some bytes above 127 for characters of base64: what it made
 * of the text is written again, and must be that text. */
int dl_key_parse(
	unsigned char key[DL_KEY], const char *s, size_t n, struct dl_err *e)
{
	char text[DL_KEY_TEXT + 1];
	size_t got;
	int rc = n == DL_KEY_TEXT ? 0 : -1;

	if (!rc)
		rc = sodium_base642bin(key, DL_KEY, s, n, NULL, &got, NULL,
			sodium_base64_VARIANT_ORIGINAL);
	if (!rc)
		rc = got == DL_KEY
			     ? sodium_memcmp(dl_key_print(text, key), s, n)
			     : -1;
	sodium_memzero(text, sizeof text);
	if (rc)
		return dl_fail(e, DL_DATA,
			"not a key: those are %d characters of base64",
			DL_KEY_TEXT);
	return 0;
}

/* Others must have had no chance to read it. What is neither file nor pipe has
 * no mode that says anything; a pipe is of who writes it. */
static int check(int fd, struct dl_err *e)
{
	mode_t others = S_IRWXG | S_IRWXO;
	struct stat st;

	if (fstat(fd, &st))
		return dl_fail_sys(e, DL_IOERR, "cannot be looked at");
	if (isatty(fd))
		return dl_fail(e, DL_NOINPUT,
			"is a terminal, which would show the key");
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
		return 0;
	if (S_ISREG(st.st_mode) && st.st_uid != geteuid() && st.st_uid != 0)
		return dl_fail(e, DL_NOPERM, "belongs to user %lu, not to us",
			(unsigned long)st.st_uid);
	/* Root lets us read by an access list, as systemd does credentials;
	 * what a list allows shows in the rights of the group. */
	if (S_ISREG(st.st_mode) && st.st_uid != geteuid() && !st.st_gid)
		others &= ~(mode_t)S_IRGRP;
	if (st.st_mode & others)
		return dl_fail(e, DL_NOPERM,
			"mode %04o lets others at it: a key is for its owner "
			"alone (0600)",
			(unsigned)(st.st_mode & 07777));
	return 0;
}

static int read_secret(int fd, unsigned char secret[DL_KEY], struct dl_err *e)
{
	char text[DL_KEY_TEXT + 2]; /* a newline, and one that is too many */
	ssize_t n = dl_read_full(fd, text, sizeof text);
	int rc;

	if (n < 0)
		return dl_fail_sys(e, DL_IOERR, "cannot be read");
	if (n == DL_KEY_TEXT + 1 && text[DL_KEY_TEXT] == '\n')
		n = DL_KEY_TEXT;
	rc = dl_key_parse(secret, text, (size_t)n, e);
	sodium_memzero(text, sizeof text);
	return rc;
}

static int read_key(struct dl_key **k, int fd, struct dl_err *e)
{
	int rc = check(fd, e);

	if (!rc)
		rc = alloc(k, e);
	if (rc)
		return rc;
	rc = read_secret(fd, (*k)->secret, e);
	if (rc) {
		dl_key_free(*k);
		*k = NULL;
		return rc;
	}
	crypto_scalarmult_base((*k)->public, (*k)->secret);
	return 0;
}

/* A descriptor that was passed on is used as it is: opened anew under its name
 * it would stay open beside, and a socket cannot be. */
static int open_key(const char *path, int *fd, struct dl_err *e)
{
	static const char folder[] = "/dev/fd/";
	uint64_t n;

	*fd = STDIN_FILENO;
	if (!strcmp(path, "-"))
		return 0;
	if (strncmp(path, folder, sizeof folder - 1) ||
		dl_parse_u64(path + sizeof folder - 1, 0, INT_MAX, &n))
		return dl_open_read(path, fd, e);
	*fd = (int)n;
	return fcntl(*fd, F_GETFD) < 0 ? dl_fail_sys(e, DL_NOINPUT, "%s", path)
				       : 0;
}

int dl_key_read(struct dl_key **k, const char *path, struct dl_err *e)
{
	int fd, rc = open_key(path, &fd, e);

	*k = NULL;
	if (rc)
		return rc;
	rc = read_key(k, fd, e);
	if (rc)
		dl_at(e, "%s", fd == STDIN_FILENO ? "standard input" : path);
	if (fd > STDERR_FILENO)
		close(fd);
	return rc;
}
