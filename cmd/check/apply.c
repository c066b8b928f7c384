#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/check/rules.h"
#include "cmd/check/talk.h"
#include "cmd/cmd.h"
#include "cmd/learn/fragment.h"

/* Sums of two f32 values may be made in any order and precision. */
static const float rounding = 1e-6f;

int check_expect(struct check *c, float **want, float part, struct dl_err *e)
{
	int found = talk_get(c, e);

	if (!found && values_differ_anywhere(&c->layout, c->got, want, part, e))
		found = FINDING_WRONG;
	return found;
}

enum finding check_load(struct check *c, struct dl_err *e)
{
	int found = talk_load(c, 0, e);

	return (enum finding)(found ? found : check_expect(c, c->model, 0, e));
}

enum finding check_together(struct check *c, struct dl_err *e)
{
	int found = talk_load_at_once(c, e);

	return (enum finding)(found ? found : check_expect(c, c->model, 0, e));
}

/* Fragment 0 alone, which must leave the others as they are; then all. */
static enum finding try_apply(struct check *c, const char *how, float keep,
	float add, float part, struct dl_err *e)
{
	float **v = values_new(&c->layout), **want = values_new(&c->layout);
	int found = talk_load(c, 0, e);

	values_draw(&c->layout, v, 1);
	values_mix(&c->layout, want, keep, c->model, add, v);
	if (!found)
		found = talk_apply(c, 0, v, how, e);
	if (!found)
		found = talk_get(c, e);
	if (!found && values_differ(&c->layout, 0, c->got, want, part, e))
		found = FINDING_WRONG;
	for (uint32_t p = 1; p < c->layout.fragments && !found; p++)
		if (values_differ(&c->layout, p, c->got, c->model, 0, e)) {
			dl_at(e,
				"changes fragment %u when fragment 0 is "
				"applied",
				p);
			found = FINDING_WRONG;
		}
	for (uint32_t p = 1; p < c->layout.fragments && !found; p++)
		found = talk_apply(c, p, v, how, e);
	if (!found)
		found = check_expect(c, want, part, e);
	values_free(&c->layout, v);
	values_free(&c->layout, want);
	return (enum finding)found;
}

enum finding check_set(struct check *c, struct dl_err *e)
{
	return try_apply(c, "set", 0, 1, 0, e);
}

enum finding check_add(struct check *c, struct dl_err *e)
{
	return try_apply(c, "add", 1, 1, rounding, e);
}

enum finding check_blend(struct check *c, struct dl_err *e)
{
	return try_apply(c, "blend 0.25", 0.25f, 0.75f, rounding, e);
}

/* Sets it, after a step, to the values that it has. */
static int step_and_set(struct check *c, struct dl_err *e)
{
	int found = talk_step(c, e);

	if (!found)
		found = talk_get(c, e);
	return found ? found : talk_apply_all(c, c->got, "set", e);
}

enum finding check_keep(struct check *c, struct dl_err *e)
{
	struct check_trace plain = {.values = NULL};
	int found = talk_load(c, 0, e);

	if (!found)
		found = check_walk(c, &plain, e);
	if (!found)
		found = talk_load(c, 0, e);
	for (int i = 0; i < CHECK_STEPS && !found; i++)
		found = step_and_set(c, e);
	if (!found && values_differ_anywhere(
			      &c->layout, c->got, plain.values, 0, e)) {
		dl_at(e, "set to the values it has, it goes on otherwise");
		found = FINDING_WRONG;
	}
	check_trace_release(c, &plain);
	return (enum finding)found;
}

int check_refusal(struct check *c, const char *order, const char *path,
	const char *rest, struct dl_err *e)
{
	int found = talk_ask(c, e, "%s %s%s", order, path, rest);

	if (found == FINDING_REFUSED)
		return 0;
	if (!found)
		dl_fail(e, DL_NO, "obeys %s of half a file", order);
	return FINDING_WRONG;
}

void check_halve(const char *path)
{
	struct dl_err e;
	struct stat st;

	if (stat(path, &st) || truncate(path, st.st_size / 2))
		cmd_die(dl_fail_sys(&e, DL_IOERR, "%s", path), "%s", e.text);
}

enum finding check_damaged(struct check *c, struct dl_err *e)
{
	char *path = talk_file(c, "apply", 0);
	float **v = values_new(&c->layout);
	int found = talk_load(c, 0, e);

	if (fragment_write(&c->layout, 0, v[0], NULL, path, e))
		cmd_die(e->code, "%s", e->text);
	check_halve(path);
	if (!found)
		found = check_refusal(c, "apply 0", path, " set", e);
	if (!found && check_expect(c, c->model, 0, e)) {
		dl_at(e, "changed by an order that failed");
		found = FINDING_WRONG;
	}
	values_free(&c->layout, v);
	free(path);
	return (enum finding)found;
}

enum finding check_orders(struct check *c, struct dl_err *e)
{
	int found = talk_ask(c, e, "hum a-tune");

	if (!found) {
		dl_fail(e, DL_NO, "obeys \"hum a-tune\", which is no order");
		return FINDING_WRONG;
	}
	if (found == FINDING_REFUSED)
		found = talk_load(c, 0, e);
	return (enum finding)found;
}
