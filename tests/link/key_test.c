/* Keys as text and in files. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "base/file.h"
#include "base/mem.h"
#include "link/key.h"
#include "tests/tap.h"

/* RFC 7748, 6.1: Alice's. */
static const char secret[] = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=",
		  public[] = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
static char path[] = "/tmp/key_test.XXXXXX";

static void test_text(void)
{
	static const char *const bad[] = {"",
		"dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo",
		"dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=\n",
		"dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCp=", /* a bit over */
		"dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCoo",
		"dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LC==",
		"dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR2 LCo=",
		"dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR2-LCo=",
		"dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR2_LCo=",
		"====CnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=",
		"dwdtCnMYpX08FsF\x92UbJmRd9ML4frwJkqsXf7pR25LCo="};
	unsigned char key[DL_KEY];
	char text[DL_KEY_TEXT + 1];
	struct dl_err e = {0};
	struct dl_key k;
	size_t taken = 0;

	ok(!dl_key_parse(key, secret, strlen(secret), NULL) &&
			!strcmp(dl_key_print(text, key), secret),
		"text and back");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		taken += dl_key_parse(key, bad[i], strlen(bad[i]), &e) !=
			 DL_DATA;
	ok(taken == 0, "what is no key is refused: %s", e.text);
	dl_key_make(&k);
	crypto_scalarmult_base(key, k.secret);
	ok(!memcmp(key, k.public, DL_KEY) && !sodium_is_zero(k.secret, DL_KEY),
		"a new pair");
}

static void write_file(const char *text, size_t n)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	if (fd < 0 || dl_write_full(fd, text, n))
		exit(99);
	close(fd);
}

static int code_of(const char *name, struct dl_err *e)
{
	struct dl_key *k;
	int rc = dl_key_read(&k, name, e);

	if (rc && k)
		return -1;
	dl_key_free(k);
	return rc;
}

static void test_file(void)
{
	char text[64], out[DL_KEY_TEXT + 1];
	size_t n = strlen(secret);
	struct dl_err e = {0};
	struct dl_key *k;

	memcpy(text, secret, n);
	memcpy(text + n, "\n\n", 3);
	write_file(text, n);
	ok(!dl_key_read(&k, path, NULL) &&
			!strcmp(dl_key_print(out, k->public), public),
		"read, with its public key");
	dl_key_free(k);
	write_file(text, n + 1);
	ok(!code_of(path, NULL), "a newline may follow");
	write_file(text, n + 2);
	ok(code_of(path, &e) == DL_DATA, "two may not: %s", e.text);
	ok(!strstr(e.text, "dwdt"), "the message does not show it");
	text[n] = '\0';
	write_file(text, n + 1);
	ok(code_of(path, NULL) == DL_DATA, "nor may a NUL");
	write_file("\n", 1);
	ok(code_of(path, NULL) == DL_DATA, "an empty line is no key");
	write_file("", 0);
	ok(code_of(path, NULL) == DL_DATA, "an empty file is no key");
	ok(code_of("/nowhere/key", NULL) == DL_NOINPUT, "no file");
	ok(code_of("/tmp", NULL) == DL_IOERR, "a folder");
	write_file(secret, n);
}

static void test_modes(void)
{
	size_t taken = 0;
	struct dl_err e = {0};

	for (mode_t bit = 1; bit <= 040; bit <<= 1) {
		chmod(path, 0600 | bit);
		taken += code_of(path, &e) != DL_NOPERM;
	}
	ok(taken == 0, "any right of others: %s", e.text);
	chmod(path, 0400);
	ok(!code_of(path, NULL), "mode 0400");
	chmod(path, 0600);
	if (geteuid()) {
		skip("only root can give a file away");
		return;
	}
	if (chown(path, 1, 1))
		exit(99);
	ok(code_of(path, &e) == DL_NOPERM, "somebody else's: %s", e.text);
	if (seteuid(1))
		exit(99);
	ok(!code_of(path, NULL), "our own");
	if (seteuid(0) || chown(path, 0, 0))
		exit(99);
	/* As root lets us have it by an access list; our group is still 0. */
	chmod(path, 0440);
	if (seteuid(1))
		exit(99);
	ok(!code_of(path, NULL), "root's, which its group may read");
	if (seteuid(0) || chmod(path, 0460) || seteuid(1))
		exit(99);
	ok(code_of(path, NULL) == DL_NOPERM, "but not write");
	if (seteuid(0) || chmod(path, 0444) || seteuid(1))
		exit(99);
	ok(code_of(path, NULL) == DL_NOPERM, "nor others read");
	if (seteuid(0) || chown(path, 0, 1) || chmod(path, 0440) ||
		setegid(1) || seteuid(1))
		exit(99);
	ok(code_of(path, NULL) == DL_NOPERM, "nor another group");
	if (seteuid(0) || setegid(0) || chown(path, 0, 0) || chmod(path, 0600))
		exit(99);
}

static void test_descriptors(void)
{
	char *name;
	struct dl_err e = {0};
	int fd = open(path, O_RDONLY), ends[2];

	name = dl_sprintf("/dev/fd/%d", fd);
	ok(!code_of(name, NULL) && fcntl(fd, F_GETFD) < 0,
		"a descriptor is read and closed");
	ok(code_of(name, &e) == DL_NOINPUT, "one that is not open: %s", e.text);
	free(name);
	if (pipe(ends) || dl_write_full(ends[1], secret, strlen(secret)))
		exit(99);
	close(ends[1]);
	name = dl_sprintf("/dev/fd/%d", ends[0]);
	ok(!code_of(name, NULL), "a pipe");
	free(name);
	chmod(path, 0644);
	fd = open(path, O_RDONLY);
	if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
		exit(99);
	ok(code_of("-", &e) == DL_NOPERM && fcntl(0, F_GETFD) >= 0,
		"a file's mode counts however it comes: %s", e.text);
	chmod(path, 0600);
	ok(!code_of("-", NULL), "standard input");
	close(fd);
}

/* What the kernel says of the memory at p (proc(5), smaps): is flag, such as
 * " lo", among it? -1 when it says nothing. */
static int memory_has(const void *p, const char *flag)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	unsigned long long first, end;
	int inside = 0, has = -1;
	char line[512];

	while (maps && has < 0 && fgets(line, sizeof line, maps)) {
		if (sscanf(line, "%llx-%llx ", &first, &end) == 2)
			inside = first <= (uintptr_t)p && (uintptr_t)p < end;
		if (inside && !strncmp(line, "VmFlags:", 8))
			has = strstr(line, flag) != NULL;
	}
	if (maps)
		fclose(maps);
	return has;
}

static void test_memory(void)
{
	static const unsigned char ordinary;
	struct dl_key *k;

	if (memory_has(&ordinary, " dd") < 0) {
		skip("nothing to know about memory");
		return;
	}
	if (dl_key_new(&k, NULL))
		exit(99);
	ok(memory_has(k, " dd") && !memory_has(&ordinary, " dd"),
		"no core dump has the key");
	if (mlock(&ordinary, 1))
		skip("no memory may be locked");
	else /* sanitizers only say that it is */
		ok(memory_has(k, " lo") == memory_has(&ordinary, " lo"),
			"it is locked like what we lock");
	dl_key_free(k);
}

int main(void)
{
	int fd = mkstemp(path);

	if (sodium_init() < 0 || fd < 0)
		return 99;
	close(fd);
	test_text();
	test_file();
	test_modes();
	test_descriptors();
	test_memory();
	unlink(path);
	return done_testing();
}
