#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "cmd/check/rules.h"
#include "cmd/check/talk.h"
#include "cmd/cmd.h"

enum { BEFORE = 2 }; /* steps made when the state is taken */

/* Some steps, so that there is a state worth keeping. */
static int warm_up(struct check *c, struct dl_err *e)
{
	int found = talk_load(c, 0, e);

	for (int i = 0; i < BEFORE && !found; i++)
		found = talk_step(c, e);
	return found;
}

/* Has it write its state, and go on: t. v become the values at that time. */
static int take_state(struct check *c, const char *order, const char *path,
	float **v, struct check_trace *t, struct dl_err *e)
{
	int found = warm_up(c, e);

	if (!found)
		found = talk_get(c, e);
	if (!found)
		values_mix(&c->layout, v, 1, c->got, 0, c->got);
	if (!found)
		found = talk_ask(c, e, "%s %s", order, path);
	return found ? found : check_walk(c, t, e);
}

/* Does a trainer that goes on from there do what the other did? */
static int compare(struct check *c, const char *order,
	const struct check_trace *t, struct dl_err *e)
{
	struct check_trace other = {.values = NULL};
	int found = check_walk(c, &other, e);

	if (!found && !c->varies && check_same(c, t, &other, e)) {
		dl_at(e, "goes on otherwise after %s", order);
		found = FINDING_WRONG;
	}
	check_trace_release(c, &other);
	return found;
}

/* Another process, whose first order is this. */
static int begin_from(
	struct check *c, const char *order, const char *path, struct dl_err *e)
{
	int found;

	talk_end(c);
	found = talk_begin(c, e);
	return found ? found : talk_order(c, e, "%s %s", order, path);
}

enum finding check_save(struct check *c, struct dl_err *e)
{
	struct check_trace t = {.values = NULL};
	float **v = values_new(&c->layout);
	char *path = talk_file(c, "save", 0);
	int found = take_state(c, "save", path, v, &t, e);

	if (!found)
		found = begin_from(c, "restore", path, e);
	if (!found)
		found = talk_apply_all(c, v, "set", e);
	if (!found)
		found = talk_order(c, e, "clock %d", BEFORE);
	if (!found)
		found = compare(c, "restore", &t, e);
	free(path);
	values_free(&c->layout, v);
	check_trace_release(c, &t);
	return (enum finding)found;
}

/* Does the file hold these values, as a peer would read them? */
static int read_export(
	struct check *c, const char *path, float **v, struct dl_err *e)
{
	if (values_read(&c->layout, c->got, path, e))
		return FINDING_WRONG;
	return values_differ_anywhere(&c->layout, c->got, v, 0, e)
		       ? FINDING_WRONG
		       : 0;
}

/* A state that is what the trainer had when it was asked for it. */
static int take_export(struct check *c, const char *path, float **v,
	struct check_trace *t, struct dl_err *e)
{
	int found = take_state(c, "export", path, v, t, e);

	return found ? found : read_export(c, path, v, e);
}

enum finding check_export(struct check *c, struct dl_err *e)
{
	struct check_trace t = {.values = NULL};
	float **v = values_new(&c->layout);
	char *path = talk_file(c, "export", 0);
	int found = take_export(c, path, v, &t, e);

	free(path);
	values_free(&c->layout, v);
	check_trace_release(c, &t);
	return (enum finding)found;
}

/* A file with room for the model and two moments, as a run makes it. */
static void make_room(struct check *c, const char *path)
{
	size_t bytes = 1 << 16;
	struct dl_err e;
	void *zeroes;

	for (uint32_t p = 0; p < c->layout.fragments; p++)
		bytes += 3 * sizeof(float) * c->layout.fragment[p].elements;
	zeroes = dl_alloc(bytes);
	if (dl_write_file(path, zeroes, bytes, &e))
		cmd_die(e.code, "%s", e.text);
	free(zeroes);
}

/* A step, and an export of what it led to. */
static int step_and_export(struct check *c, const char *path, struct dl_err *e)
{
	float **v = values_new(&c->layout);
	int found = talk_step(c, e);

	if (!found)
		found = talk_get(c, e);
	values_mix(&c->layout, v, 1, c->got, 0, c->got);
	if (!found)
		found = talk_ask(c, e, "export %s", path);
	if (!found)
		found = read_export(c, path, v, e);
	values_free(&c->layout, v);
	return found;
}

enum finding check_prepare(struct check *c, struct dl_err *e)
{
	char *path = talk_file(c, "export", 0);
	int refused, found = talk_load(c, 0, e);
	struct dl_err why;

	make_room(c, path);
	refused = found ? 0 : talk_ask(c, e, "prepare %s", path);
	if (refused == FINDING_WRONG)
		found = refused;
	for (int i = 0; i < 2 && !found; i++)
		if ((found = step_and_export(c, path, &why)))
			*e = why;
	free(path);
	return (enum finding)(found ? found : refused);
}

/* Another writer of the format may have padded the header by that much. */
enum { PADDING = 64, LIMIT = 1 << 30 };

static void pad_header(const char *path)
{
	struct dl_buf in = DL_BUF_INIT, out = DL_BUF_INIT;
	unsigned char length[8];
	struct dl_err e;
	uint64_t n;

	if (dl_read_file(path, LIMIT, &in, &e))
		cmd_die(e.code, "%s", e.text);
	n = dl_le64(in.data);
	dl_put_le64(length, n + PADDING);
	dl_buf_add(&out, length, sizeof length);
	dl_buf_add(&out, in.data + 8, n);
	for (int i = 0; i < PADDING; i++)
		dl_buf_byte(&out, ' ');
	dl_buf_add(&out, in.data + 8 + n, in.len - 8 - n);
	if (dl_write_file(path, out.data, out.len, &e))
		cmd_die(e.code, "%s", e.text);
	dl_buf_free(&in);
	dl_buf_free(&out);
}

enum finding check_import(struct check *c, struct dl_err *e)
{
	struct check_trace t = {.values = NULL};
	float **v = values_new(&c->layout);
	char *path = talk_file(c, "export", 0);
	int found = take_export(c, path, v, &t, e);

	if (!found) {
		pad_header(path);
		found = begin_from(c, "import", path, e);
	}
	if (!found)
		found = talk_order(c, e, "clock %d", BEFORE);
	if (!found)
		found = check_expect(c, v, 0, e);
	if (!found)
		found = compare(c, "import", &t, e);
	free(path);
	values_free(&c->layout, v);
	check_trace_release(c, &t);
	return (enum finding)found;
}

enum finding check_torn(struct check *c, struct dl_err *e)
{
	char *path = talk_file(c, "export", 0);
	int found = warm_up(c, e);

	if (!found)
		found = talk_ask(c, e, "export %s", path);
	if (!found) {
		check_halve(path);
		talk_end(c);
		found = talk_begin(c, e);
	}
	if (!found)
		found = check_refusal(c, "import", path, "", e);
	if (!found)
		found = check_load(c, e);
	free(path);
	return (enum finding)found;
}

enum finding check_stop(struct check *c, struct dl_err *e)
{
	int found = warm_up(c, e);

	return (enum finding)(found ? found : talk_stop(c, 0, e));
}

enum finding check_end(struct check *c, struct dl_err *e)
{
	int found = warm_up(c, e);

	return (enum finding)(found ? found : talk_stop(c, 1, e));
}
