/*
 * Checkpoints, crashed at every call: one that is being written is there whole
 * or not at all, and what is unpacked is no store before all of it is there.
 */
#include "state/checkpoint.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../tap.h"
#include "crash.h"

static const char layout_text[] =
	"# name\tdtype\tshape\telements\tfragment\trule\n"
	"# format\t1\n"
	"a\tF32\t4\t4\t0\trda\n"
	"b\tF32\t2\t2\t1\tmean\n";
enum { P = 2, MOST = 4 };

static struct dl_layout layout;
static char *source, *good;	 /* not crashed: a store, its checkpoint */
static char *written, *unpacked; /* in the root */

static void must(int rc, const struct dl_err *e, const char *what)
{
	if (!rc)
		return;
	printf("Bail out! %s: %d %s\n", what, rc, e->text);
	exit(1);
}

/* After one merge of fragment 1, which leaves an error. */
static void make_source(void)
{
	static const float v[MOST] = {1, 2, 3, 4};
	const float *values[P] = {v, v};
	const struct dl_store_run run = {"demo", 24};
	struct dl_sync_saved_fragment fragment[P] = {
		{.version = {1, 0}}, {.version = {1, 0}}};
	struct dl_sync_saved saved = {
		.epoch = 1, .fragments = P, .fragment = fragment};
	struct dl_store *s;
	struct dl_err e;

	must(dl_store_create(source, &run, &layout, &saved, values, &e), &e,
		"create");
	must(dl_store_open(&s, source, DL_STORE_OWN, &e), &e, "open");
	fragment[1].version.number = saved.clock = 1;
	must(dl_store_commit(s, 1, v + 1, v, v + 2, &saved, &e), &e, "commit");
	dl_store_close(s);
}

static int write_checkpoint(void *path)
{
	struct dl_store *s;
	struct dl_pin *pin;
	struct dl_err e;
	int rc = dl_store_open(&s, source, DL_STORE_OWN, &e);

	if (rc)
		return rc;
	pin = dl_store_pin(s);
	rc = dl_checkpoint_write(pin, 0, path, &e);
	dl_store_unpin(s, pin);
	dl_store_close(s);
	return rc;
}

static int unpack(void *folder)
{
	struct dl_err e;

	return dl_checkpoint_unpack(good, folder, 0, &e);
}

static int is_sound(const char *path)
{
	struct dl_checkpoint_info info;
	struct dl_err e;

	return !dl_checkpoint_check(path, &info, &e) && info.clock == 1;
}

static int is_whole(const char *folder)
{
	float v[3][MOST];
	struct dl_store *s;
	struct dl_err e;
	int whole = !dl_store_open(&s, folder, DL_STORE_LOOK, &e) &&
		    !dl_store_load(s, 0, v[0], v[1], &e) && v[0][3] == 4 &&
		    v[1][3] == 0 && !dl_store_load(s, 1, v[0], v[1], &e) &&
		    v[0][0] == 2 && v[1][0] == 1 &&
		    !dl_store_load_error(s, 1, v[2], &e) && v[2][0] == 3;

	dl_store_close(s);
	return whole;
}

static int is_none(const char *folder)
{
	struct dl_store *s;
	struct dl_err e;
	int rc = dl_store_open(&s, folder, DL_STORE_LOOK, &e);

	dl_store_close(s);
	return rc == DL_NOINPUT;
}

/* Whatever was there of it, the next who tries does it. */
static int survives_writing(const struct crash *plan)
{
	const struct crash none = {0};

	return crash_run(plan, write_checkpoint, written, NULL) == CRASHED &&
	       (access(written, F_OK) || is_sound(written)) &&
	       !crash_run(&none, write_checkpoint, written, NULL) &&
	       is_sound(written);
}

static int survives_unpacking(const struct crash *plan)
{
	const struct crash none = {0};
	int there;

	if (crash_run(plan, unpack, unpacked, NULL) != CRASHED)
		return 0;
	there = is_whole(unpacked);
	return (there || is_none(unpacked)) &&
	       crash_run(&none, unpack, unpacked, NULL) ==
		       (there ? DL_CANTCREAT : 0) &&
	       is_whole(unpacked);
}

static void test(const char *what, int (*run)(void *arg), char *arg,
	int (*survives)(const struct crash *plan))
{
	static const char *const dos[] = {"kill", "power", "mixed"};
	unsigned calls, tried = 0, bad = 0;

	crash_clean();
	calls = crash_count(run, arg, "");
	for (unsigned i = 0; i < 3; i++)
		for (unsigned at = i ? i : 1; at <= calls;
			at += i && !crash_all() ? 3 : 1) {
			struct crash plan = {
				.what = dos[i], .at = at, .seed = at};

			crash_clean();
			tried++;
			if (survives(&plan))
				continue;
			bad++;
			printf("# %s at call %u of %u\n", dos[i], at, calls);
		}
	ok(tried > 3 && !bad, "%s: crashed %u times", what, tried);
}

int main(int argc, char **argv)
{
	struct dl_err e;

	(void)argc;
	crash_begin(argv);
	source = dl_sprintf("%s/source", crash_folder());
	good = dl_sprintf("%s/good.tar.zst", crash_folder());
	written = dl_sprintf("%s/written.tar.zst", crash_root_folder());
	unpacked = dl_sprintf("%s/unpacked", crash_root_folder());
	must(dl_layout_parse(&layout, layout_text, sizeof layout_text - 1, &e),
		&e, "layout");
	make_source();
	if (write_checkpoint(good))
		return 99;
	test("writing", write_checkpoint, written, survives_writing);
	test("unpacking", unpack, unpacked, survives_unpacking);
	dl_layout_release(&layout);
	crash_done();
	free(source);
	free(good);
	free(written);
	free(unpacked);
	return done_testing();
}
