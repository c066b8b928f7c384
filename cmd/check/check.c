#include "cmd/check/check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/check/rules.h"
#include "cmd/check/talk.h"
#include "cmd/cmd.h"
#include "cmd/learn/environment.h"
#include "link/signals.h"
#include "tensor/packed.h"

enum { FRAGMENTS = 2 }; /* of a layout that is made for the check */

static enum finding check_ready(struct check *c, struct dl_err *e)
{
	(void)c;
	(void)e;
	return FINDING_OK;
}

/* needs: the rules that must hold for this one to mean anything. */
static const struct rule {
	const char *name, *needs[2];
	enum finding (*try)(struct check *c, struct dl_err *e);
} rules[] = {
	{"ready", {NULL}, check_ready},
	{"orders", {"ready"}, check_orders},
	{"load", {"ready"}, check_load},
	{"together", {"load"}, check_together},
	{"set", {"load"}, check_set},
	{"add", {"load"}, check_add},
	{"blend", {"load"}, check_blend},
	{"damaged", {"load"}, check_damaged},
	{"go", {"load"}, check_go},
	{"tokens", {"go"}, check_tokens},
	{"repeat", {"go"}, check_repeat},
	{"clock", {"repeat", "set"}, check_clock},
	{"fresh", {"repeat", "set"}, check_fresh},
	{"keep", {"repeat", "set"}, check_keep},
	{"save", {"go", "set"}, check_save},
	{"export", {"go"}, check_export},
	{"prepare", {"export"}, check_prepare},
	{"import", {"export"}, check_import},
	{"torn", {"export"}, check_torn},
	{"stop", {"go"}, check_stop},
	{"end", {"go"}, check_end},
};
enum { RULES = sizeof rules / sizeof *rules };

static const char *const findings[] = {
	[FINDING_OK] = "ok",
	[FINDING_WRONG] = "wrong",
	[FINDING_REFUSED] = "refused",
	[FINDING_VARIES] = "varies",
	[FINDING_SKIPPED] = "skipped",
};

static int read_layout(struct check *c, struct dl_err *e)
{
	const struct check_options *o = c->options;
	struct dl_plan_options plan = {
		.strategy = DL_BALANCED, .fragments = FRAGMENTS};
	struct dl_model m;
	int code = dl_model_open_headers(&m, o->model, e);

	if (code)
		return code;
	code = o->layout ? dl_layout_read(&c->layout, o->layout, e)
			 : dl_layout_plan(&c->layout, &m, &plan, e);
	if (!code && dl_layout_match(&c->layout, &m, e))
		code = dl_at(e, "%s", o->model);
	dl_model_close(&m);
	return code;
}

/* The scratch folder, with what a run has in it. */
static int make_place(struct check *c, const char *layout, struct dl_err *e)
{
	int code = environment_layout(&c->layout, layout, e);

	c->path = dl_scratch_file(&c->scratch, "model.safetensors");
	if (!code)
		code = dl_packed_write(&c->layout,
			(const float *const *)c->model, DL_PACKED_F32,
			&(struct dl_save){.path = c->path}, e);
	return code;
}

/* Room for the model, its fragments coming and going, and its states. */
static uint64_t room(const struct check *c)
{
	uint64_t bytes = 4 << 20;

	for (uint32_t p = 0; p < c->layout.fragments; p++)
		bytes += 9 * sizeof(float) * c->layout.fragment[p].elements;
	return bytes;
}

static enum finding found_of(const char *name, const enum finding *found)
{
	int i = 0;

	while (strcmp(rules[i].name, name))
		i++;
	return found[i];
}

/* The first that it needs and that does not hold, or NULL. */
static const char *lacks(const struct rule *r, const enum finding *found)
{
	for (int i = 0; i < 2; i++)
		if (r->needs[i] && found_of(r->needs[i], found) != FINDING_OK)
			return r->needs[i];
	return NULL;
}

static enum finding try_rule(
	struct check *c, const struct rule *r, struct dl_err *e)
{
	int found = talk_begin(c, e);

	if (!found)
		found = r->try(c, e);
	talk_end(c);
	return (enum finding)found;
}

/* 1 when one of them is broken. */
static int try_rules(struct check *c)
{
	enum finding found[RULES];
	int wrong = 0;

	printf("# rule\tfinding\n");
	for (int i = 0; i < RULES; i++) {
		const char *without = lacks(&rules[i], found);
		struct dl_err e;

		if (without) {
			found[i] = FINDING_SKIPPED;
			dl_fail(&e, DL_NO, "%s is not ok", without);
		} else {
			found[i] = try_rule(c, &rules[i], &e);
		}
		wrong |= found[i] == FINDING_WRONG;
		printf("%s\t%s%s%s\n", rules[i].name, findings[found[i]],
			found[i] ? ": " : "", found[i] ? e.text : "");
		fflush(stdout);
	}
	return wrong;
}

/* A trainer's end only interrupts the wait for what it says. */
static void on_signal(void *ctx, int fd, short revents)
{
	struct check *c = ctx;
	int signo;

	(void)fd;
	(void)revents;
	while ((signo = dl_signals_next())) {
		if (signo == SIGCHLD)
			continue;
		dl_host_free(c->host);
		dl_scratch_remove(&c->scratch);
		signal(signo, SIG_DFL);
		raise(signo);
	}
}

static int run(struct check *c, struct dl_err *e)
{
	static const int caught[] = {SIGCHLD, SIGINT, SIGTERM};
	const struct check_options *o = c->options;
	char *variable[ENVIRONMENT], *layout;
	const char *settings[ENVIRONMENT + 1];
	struct dl_host_config config = {&c->loop, o->command, settings,
		c->scratch.path, o->stop_ns, o->silence_ns};
	int fd, code = dl_signals_open(
			caught, sizeof caught / sizeof *caught, &fd, e);

	if (code)
		return code;
	dl_loop_set(&c->loop, fd, POLLIN, on_signal, c);
	layout = dl_scratch_file(&c->scratch, "layout.tsv");
	code = make_place(c, layout, e);
	environment_set(variable, settings,
		&(struct environment){
			o->name, o->slot, o->seed, "check", layout});
	if (!code && !(c->host = dl_host_new(&config, e)))
		code = e->code;
	if (!code)
		code = try_rules(c);
	dl_host_free(c->host);
	environment_free(variable);
	free(layout);
	return code;
}

int check_run(const struct check_options *o)
{
	struct check c = {
		.options = o, .loop = DL_LOOP_INIT, .scratch = DL_SCRATCH_INIT};
	struct dl_err e;
	int code = read_layout(&c, &e);

	if (!code) {
		c.model = values_new(&c.layout);
		c.got = values_new(&c.layout);
		code = values_read(&c.layout, c.model, o->model, &e);
	}
	if (!code)
		code = dl_scratch_open(&c.scratch, o->scratch, room(&c), &e);
	if (!code)
		code = run(&c, &e);
	values_free(&c.layout, c.model);
	values_free(&c.layout, c.got);
	dl_layout_release(&c.layout);
	dl_loop_release(&c.loop);
	free(c.path);
	dl_scratch_remove(&c.scratch);
	if (code > DL_NO)
		return cmd_fail(&e);
	return cmd_flush() ? DL_IOERR : code;
}
