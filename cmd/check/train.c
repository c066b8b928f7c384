#include <math.h>
#include <stdlib.h>

#include "cmd/check/rules.h"
#include "cmd/check/talk.h"

/* Of a step, in floating point operations a second: no machine that is one
 * learner makes more, so tokens that ask for it were not trained on. */
static const double fastest = 1e18;

int check_walk(struct check *c, struct check_trace *t, struct dl_err *e)
{
	int found = 0;

	t->values = NULL;
	for (int i = 0; i < CHECK_STEPS && !found; i++) {
		found = talk_step(c, e);
		t->loss[i] = c->loss;
		t->tokens[i] = c->tokens;
	}
	if (!found)
		found = talk_get(c, e);
	if (found)
		return found;
	t->values = values_new(&c->layout);
	values_mix(&c->layout, t->values, 1, c->got, 0, c->got);
	return 0;
}

void check_trace_release(const struct check *c, struct check_trace *t)
{
	values_free(&c->layout, t->values);
	t->values = NULL;
}

int check_same(const struct check *c, const struct check_trace *t,
	const struct check_trace *other, struct dl_err *e)
{
	for (int i = 0; i < CHECK_STEPS; i++)
		if (t->loss[i] != other->loss[i]) {
			dl_fail(e, DL_NO, "loss %.9g of step %d is now %.9g",
				t->loss[i], i + 1, other->loss[i]);
			return FINDING_WRONG;
		}
	return values_differ_anywhere(
		       &c->layout, other->values, t->values, 0, e)
		       ? FINDING_WRONG
		       : 0;
}

enum finding check_go(struct check *c, struct dl_err *e)
{
	struct check_trace t = {.values = NULL};
	struct dl_err unused;
	int found = talk_load(c, 0, e);

	if (!found)
		found = check_walk(c, &t, e);
	for (int i = 0; i < CHECK_STEPS && !found; i++)
		if (!isfinite(t.loss[i])) {
			dl_fail(e, DL_NO, "the loss of step %d is no number",
				i + 1);
			found = FINDING_WRONG;
		}
	if (!found && values_broken(&c->layout, t.values, e)) {
		dl_at(e, "after %d steps", CHECK_STEPS);
		found = FINDING_WRONG;
	}
	if (!found && !values_differ_anywhere(
			      &c->layout, t.values, c->model, 0, &unused)) {
		dl_fail(e, DL_NO, "%d steps change nothing", CHECK_STEPS);
		found = FINDING_WRONG;
	}
	check_trace_release(c, &t);
	return (enum finding)found;
}

static double elements(const struct check *c)
{
	double n = 0;

	for (uint32_t p = 0; p < c->layout.fragments; p++)
		n += (double)c->layout.fragment[p].elements;
	return n;
}

/* A step on t tokens takes 6 operations a token and parameter. */
static int judge_tokens(struct check *c, uint64_t before, struct dl_err *e)
{
	double seconds = (double)c->step_ns / 1e9;
	double rate = 6 * elements(c) * (double)c->tokens / seconds;

	if (!c->tokens)
		dl_fail(e, DL_NO, "a step of no tokens");
	else if (before && before != c->tokens)
		dl_fail(e, DL_NO,
			"%llu tokens, and %llu when the same step is made "
			"again",
			(unsigned long long)before,
			(unsigned long long)c->tokens);
	else if (rate > fastest)
		dl_fail(e, DL_NO,
			"%llu tokens in %.3g s: that is %.1g operations a "
			"second",
			(unsigned long long)c->tokens, seconds, rate);
	else
		return 0;
	return FINDING_WRONG;
}

enum finding check_tokens(struct check *c, struct dl_err *e)
{
	uint64_t before[CHECK_STEPS] = {0};
	int found = 0;

	for (int again = 0; again < 2 && !found; again++) {
		found = talk_load(c, 0, e);
		for (int i = 0; i < CHECK_STEPS && !found; i++) {
			found = talk_step(c, e);
			if (!found)
				found = judge_tokens(c, before[i], e);
			before[i] = c->tokens;
		}
	}
	return (enum finding)found;
}

/* The steps that the model's values lead to at that clock, in a trainer that
 * has made others. */
static int walk_from(struct check *c, uint64_t clock, struct check_trace *t,
	struct dl_err *e)
{
	int found = talk_apply_all(c, c->model, "set", e);

	if (!found)
		found = talk_order(
			c, e, "clock %llu fresh", (unsigned long long)clock);
	return found ? found : check_walk(c, t, e);
}

enum finding check_repeat(struct check *c, struct dl_err *e)
{
	struct check_trace first = {.values = NULL}, second = first;
	int found = talk_load(c, 0, e);

	if (!found)
		found = check_walk(c, &first, e);
	if (!found) {
		talk_end(c);
		found = talk_begin(c, e);
	}
	if (!found)
		found = talk_load(c, 0, e);
	if (!found)
		found = check_walk(c, &second, e);
	if (!found && check_same(c, &first, &second, e)) {
		c->varies = 1;
		found = FINDING_VARIES;
	}
	check_trace_release(c, &first);
	check_trace_release(c, &second);
	return (enum finding)found;
}

enum finding check_fresh(struct check *c, struct dl_err *e)
{
	struct check_trace first = {.values = NULL}, second = first;
	int found = talk_load(c, 7, e);

	if (!found)
		found = check_walk(c, &first, e);
	if (!found)
		found = walk_from(c, 7, &second, e);
	if (!found && check_same(c, &first, &second, e)) {
		dl_at(e, "the optimizer does not begin anew");
		found = FINDING_WRONG;
	}
	check_trace_release(c, &first);
	check_trace_release(c, &second);
	return (enum finding)found;
}

enum finding check_clock(struct check *c, struct dl_err *e)
{
	struct check_trace first = {.values = NULL}, second = first;
	struct dl_err unused;
	int found = talk_load(c, 7, e);

	if (!found)
		found = check_walk(c, &first, e);
	if (!found)
		found = walk_from(c, 1007, &second, e);
	if (!found && !check_same(c, &first, &second, &unused)) {
		dl_fail(e, DL_NO,
			"the steps of clock 1007 are those of clock 7: "
			"neither samples nor rate follow the clock");
		found = FINDING_WRONG;
	}
	check_trace_release(c, &first);
	check_trace_release(c, &second);
	return (enum finding)found;
}
