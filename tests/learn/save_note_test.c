/* Saves that are found: only those that are whole and one's own are used. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cmd/learn/save_note.h"
#include "tests/tap.h"

static char folder[] = "save_note_test.XXXXXX";
static struct dl_err e;

static const struct save_note ann = {.run = "one",
	.learner = "ann",
	.layout = "00112233445566778899aabbccddeeff"
		  "00112233445566778899aabbccddeeff",
	.epoch = 2,
	.clock = 17,
	.file = "save.1"};

static void write_in(const char *name, const char *text, size_t n)
{
	char path[64];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	unlink(path);
	if (dl_write_file(path, text, n, &e))
		printf("Bail out! %s\n", e.text);
}

static const char *read_in(const char *name, struct dl_buf *text)
{
	char path[64];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	if (dl_read_file(path, 1 << 16, text, &e))
		printf("Bail out! %s\n", e.text);
	return dl_buf_cstr(text);
}

static int find(const struct save_note *own)
{
	static atomic_int stop;
	struct save_note note = {.run = ""};

	return save_note_find(&note, own, folder, &stop, &e);
}

static int says(const char *text)
{
	return ok(strstr(e.text, text) != NULL, "... says: %s", e.text);
}

static void seal(void)
{
	struct save_note note = ann;

	write_in("save.1", "all that it takes", 17);
	ok(!save_note_seal(&note, folder, &e), "a save is sealed");
	ok(!find(&ann), "and found");
}

static void test_bytes(void)
{
	char path[64], save[] = "all that it takes";

	snprintf(path, sizeof path, "%s/save.1", folder);
	for (int i = 0; i < 17; i++) {
		save[i] ^= 1;
		write_in("save.1", save, 17);
		save[i] ^= 1;
		if (find(&ann) != DL_DATA)
			ok(0, "byte %d may be another", i);
	}
	says("save.1: not the bytes that its note names");
	write_in("save.1", save, 16);
	ok(find(&ann) == DL_DATA, "torn");
	write_in("save.1", save, 18);
	ok(find(&ann) == DL_DATA, "longer");
	unlink(path);
	ok(find(&ann) == DL_DATA, "not there");
	says("save.1: No such file");
	write_in("save.2", save, 17);
	ok(!symlink("save.2", path) && find(&ann) == DL_DATA,
		"not through a link");
	unlink(path);
	ok(!mkfifo(path, 0600) && find(&ann) == DL_DATA, "nor from a pipe");
	says("is no file");
	write_in("save.1", save, 17);
	ok(!find(&ann), "but itself");
}

static void test_others(void)
{
	struct save_note own = ann;

	strcpy(own.run, "two");
	ok(find(&own) == DL_DATA, "another run's");
	says("a save of run one, not two");
	own = ann;
	strcpy(own.learner, "ben");
	ok(find(&own) == DL_DATA, "another learner's");
	says("a save of learner ann, not ben");
	own = ann;
	own.layout[0] = '1';
	ok(find(&own) == DL_DATA, "of another layout");
	says("a save of layout 0011223344556677, not 1011223344556677");
	own = ann;
	own.epoch = 1;
	ok(find(&own) == DL_DATA, "of an epoch to come");
	says("a save of epoch 2, which run one has not reached");
	own.epoch = 3;
	ok(!find(&own), "of an earlier epoch is fine");
}

/* Each byte of the note counts, but the last newline. */
static void test_note(void)
{
	struct dl_buf note = DL_BUF_INIT;
	size_t n = strlen(read_in(SAVE_NOTE, &note));
	int taken = 0;

	for (size_t i = 0; i + 1 < n; i++) {
		/* Of the clock nothing is known. */
		int any =
			strncmp((char *)note.data + i, "17", 2) == 0 ||
			(i && strncmp((char *)note.data + i - 1, "17", 2) == 0);

		note.data[i] ^= 1;
		write_in(SAVE_NOTE, (char *)note.data, n);
		taken += !any && find(&ann) != DL_DATA;
		note.data[i] ^= 1;
		write_in(SAVE_NOTE, (char *)note.data, i);
		taken += find(&ann) != DL_DATA;
	}
	ok(!taken, "a note is taken as it was written, whole, or not");
	note.data[19] = '2'; /* {"format":"dl-save 1" */
	write_in(SAVE_NOTE, (char *)note.data, n);
	ok(find(&ann) == DL_DATA, "nor another format");
	says("expected 'dl-save 1'");
	dl_buf_free(&note);
}

static void test_seal_fails(void)
{
	struct dl_buf before = DL_BUF_INIT, after = DL_BUF_INIT;
	struct save_note note = ann;

	seal();
	read_in(SAVE_NOTE, &before);
	strcpy(note.file, "save.7");
	ok(save_note_seal(&note, folder, &e) == DL_DATA,
		"what is not there is not sealed");
	read_in(SAVE_NOTE, &after);
	ok(before.len == after.len &&
			!memcmp(before.data, after.data, after.len),
		"and the note of before stays");
	dl_buf_free(&before);
	dl_buf_free(&after);
}

static void remove_all(void)
{
	static const char *const names[] = {"save.1", "save.2", SAVE_NOTE};
	char path[64];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}

int main(void)
{
	if (!mkdtemp(folder))
		return 99;
	ok(find(&ann) == DL_NOINPUT, "nothing is there at first");
	seal();
	test_bytes();
	test_others();
	test_note();
	test_seal_fails();
	remove_all();
	return done_testing();
}
