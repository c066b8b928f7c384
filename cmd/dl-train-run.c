#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/dl-train.h"
#include "cmd/status.h"
#include "train/blas.h"
#include "train/lead.h"
#include "train/pace.h"
#include "train/store.h"
#include "train/trainer.h"

enum {
	STEPS = 256,
	TOKENS,
	SLOT,
	RATE,
	WARMUP,
	DECAY,
	CLIP,
	STEP_TIME,
	EVAL,
	HOLD_OUT,
	SAVE,
	RESUME,
	CONFIG,
};

static const struct option options[] = {
	{"output", required_argument, NULL, 'o'},
	{"batch", required_argument, NULL, 'b'},
	{"threads", required_argument, NULL, 't'},
	{"seed", required_argument, NULL, 's'},
	{"steps", required_argument, NULL, STEPS},
	{"tokens", required_argument, NULL, TOKENS},
	{"slot", required_argument, NULL, SLOT},
	{"lr", required_argument, NULL, RATE},
	{"warmup", required_argument, NULL, WARMUP},
	{"decay", required_argument, NULL, DECAY},
	{"clip", required_argument, NULL, CLIP},
	{"step-time", required_argument, NULL, STEP_TIME},
	{"eval", required_argument, NULL, EVAL},
	{"hold-out", required_argument, NULL, HOLD_OUT},
	{"save", required_argument, NULL, SAVE},
	{"resume", required_argument, NULL, RESUME},
	{"config", required_argument, NULL, CONFIG},
	CMD_LONG,
	{NULL, 0, NULL, 0},
};

struct run {
	struct dl_training_options training;
	const char *output, *save, *resume, *config;
	uint64_t tokens, eval;
	double held_out;
	struct dl_pace pace;
	/* while it runs */
	struct train_job job;
	struct cmd_status status;
	int64_t started;
	uint64_t first; /* the clock at the start */
};

static volatile sig_atomic_t stop, show;

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		show = 1;
	else
		stop = 1;
}

/* Without SA_RESTART, so that a sleep or a read ends too. */
static void catch_signals(void)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGUSR1};
	struct sigaction a = {.sa_handler = on_signal};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &a, NULL);
}

static void read_training_option(struct run *r, int opt)
{
	struct dl_training_options *o = &r->training;

	switch (opt) {
	case 'b':
		o->batch = cmd_u64("--batch", optarg, 1, 1 << 20);
		break;
	case 't':
		o->threads = (unsigned)cmd_u64("--threads", optarg, 0, 1024);
		break;
	case 's':
		o->seed = cmd_u64("--seed", optarg, 0, UINT64_MAX);
		break;
	case SLOT:
		o->slot = cmd_u64("--slot", optarg, 0, UINT64_MAX);
		break;
	case STEPS:
		o->adamw.steps = cmd_u64("--steps", optarg, 1, UINT64_MAX >> 1);
		break;
	case RATE:
		o->adamw.rate = cmd_double("--lr", optarg, 0, 1e3);
		break;
	case WARMUP:
		o->adamw.warmup = cmd_u64("--warmup", optarg, 0, UINT32_MAX);
		break;
	case DECAY:
		o->adamw.decay = cmd_double("--decay", optarg, 0, 1e3);
		break;
	case CLIP:
		o->adamw.clip = cmd_double("--clip", optarg, 0, INFINITY);
		break;
	default:
		cmd_common_option(opt);
	}
}

static void read_option(struct run *r, int opt)
{
	switch (opt) {
	case 'o':
		r->output = optarg;
		break;
	case TOKENS:
		r->tokens = cmd_u64("--tokens", optarg, 1, UINT64_MAX >> 1);
		break;
	case STEP_TIME:
		r->pace.period = cmd_duration("--step-time", optarg);
		break;
	case EVAL:
		r->eval = cmd_u64("--eval", optarg, 1, UINT64_MAX);
		break;
	case HOLD_OUT:
		r->held_out = cmd_double("--hold-out", optarg, 0, 1);
		break;
	case SAVE:
		r->save = optarg;
		break;
	case RESUME:
		r->resume = optarg;
		break;
	case CONFIG:
		r->config = optarg;
		break;
	default:
		read_training_option(r, opt);
	}
}

/* dl-learn says in the environment which part of the data is ours. */
static void read_environment(struct dl_training_options *o)
{
	const char *seed = getenv("DL_SEED"), *slot = getenv("DL_SLOT");

	if (seed)
		o->seed = cmd_u64("DL_SEED", seed, 0, UINT64_MAX);
	if (slot)
		o->slot = cmd_u64("DL_SLOT", slot, 0, UINT64_MAX);
}

static void show_status(struct run *r, double loss)
{
	struct dl_training *t = &r->job.training;
	uint64_t done = t->clock - r->first, end = t->adamw.options.steps;
	double seconds = (double)(dl_now() - r->started) / 1e9;
	double rate = (double)done / seconds;
	double speed = rate * (double)dl_training_step_tokens(t);
	char left[DL_HUMAN];

	if (end < t->clock) {
		cmd_status_show(&r->status,
			"step %llu, loss %.4f, %.0f tokens/s",
			(unsigned long long)t->clock, loss, speed);
		return;
	}
	dl_human_duration(
		left, (int64_t)((double)(end - t->clock) / rate * 1e9));
	cmd_status_show(&r->status,
		"step %llu of %llu, loss %.4f, %.0f tokens/s, %s left",
		(unsigned long long)t->clock, (unsigned long long)end, loss,
		speed, left);
}

static void note_held_out(struct run *r)
{
	const struct dl_corpus *c = &r->job.corpus;

	cmd_status_end();
	cmd_note("step %llu: held-out loss %.4f nats/%s",
		(unsigned long long)r->job.training.clock,
		dl_training_loss(&r->job.training, c->train, c->tokens),
		c->width == 1 ? "byte" : "token");
}

/* After each step, alone or not. */
static void stepped(void *ctx, double loss)
{
	struct run *r = ctx;

	if (show || cmd_status_due(&r->status))
		show_status(r, loss);
	show = 0;
	if (r->eval && r->job.training.clock % r->eval == 0)
		note_held_out(r);
}

static int run_alone(struct run *r)
{
	struct dl_training *t = &r->job.training;

	while (!stop && t->clock < t->adamw.options.steps) {
		double loss = dl_training_step(t);

		dl_pace_wait(&r->pace);
		stepped(r, loss);
	}
	cmd_status_end();
	cmd_debug("%" PRIu64 " steps in %.3f s", t->clock - r->first,
		(double)(dl_now() - r->started) * 1e-9);
	return 0;
}

static void explain_lost(const struct dl_trainer *t)
{
	if (!t->spent)
		return;
	cmd_status_end();
	cmd_debug("%" PRIu64 " steps in %.3f s, %.3f s of it (%.2f%%) between "
		  "steps",
		t->steps, (double)t->spent * 1e-9, (double)t->lost * 1e-9,
		100 * (double)t->lost / (double)t->spent);
}

static int run_trainer(struct run *r, const char *socket, struct dl_err *e)
{
	struct dl_fragments fragments = {0};
	const char *layout = getenv("DL_LAYOUT");
	struct dl_trainer t = {.training = &r->job.training,
		.pace = &r->pace,
		.stop = &stop,
		.stepped = stepped,
		.ctx = r};
	int rc = 0;

	if (layout) {
		rc = dl_fragments_open(&fragments, &r->job.m, layout, e);
		t.fragments = &fragments;
	}
	if (!rc)
		rc = dl_trainer_run(&t, socket, e);
	explain_lost(&t);
	dl_fragments_close(&fragments);
	return rc;
}

/* What cannot be kept is better not trained. */
static int check_outputs(const struct run *r, struct dl_err *e)
{
	int rc = r->save ? dl_output_check(r->save, e) : 0;

	if (!rc && r->output)
		rc = dl_store_check_model(r->output, e);
	return rc;
}

static int lead(struct run *r, const char *socket, struct dl_err *e)
{
	struct dl_training *t = &r->job.training;
	int rc = r->resume ? dl_store_restore(t, r->resume, e) : 0;

	if (!rc)
		rc = check_outputs(r, e);
	if (rc)
		return rc;
	dl_lead_state(t);
	r->started = dl_now();
	r->first = t->clock;
	rc = socket ? run_trainer(r, socket, e) : run_alone(r);
	cmd_status_end();
	if (!rc && r->save)
		rc = dl_store_save(t, r->save, e);
	if (!rc && r->output)
		rc = dl_store_write_model(&r->job.m, r->output, t->values, e);
	return rc;
}

static int run(struct run *r, const char *socket, struct dl_err *e)
{
	struct dl_training *t = &r->job.training;
	size_t step = dl_training_step_tokens(t);
	int rc = dl_corpus_check(&r->job.corpus, r->job.m.config.context, e);

	if (rc)
		return rc;
	if (r->tokens)
		t->adamw.options.steps = (r->tokens + step - 1) / step;
	if (dl_ranks_rank(r->training.ranks)) {
		dl_follow(t);
		return 0;
	}
	rc = lead(r, socket, e);
	dl_lead_end(t);
	return rc;
}

static void check_use(const struct run *r, const char *socket)
{
	if (r->tokens && r->training.adamw.steps)
		cmd_usage("run: --steps and --tokens say the same thing");
	if (!socket && !r->tokens && !r->training.adamw.steps)
		cmd_usage("run: how many --steps or --tokens?");
	if (!socket && !r->output && !r->save)
		cmd_usage("run: nothing would be kept: --output or --save");
}

int train_run(int argc, char **argv)
{
	struct run r = {.training = {.adamw = DL_ADAMW_DEFAULTS,
				.batch = 12,
				.threads = 1},
		.held_out = 0.1};
	const char *socket = getenv("DL_TRAINER");
	struct dl_err e;
	size_t rank;
	int opt, rc;

	read_environment(&r.training);
	while ((opt = getopt_long(argc, argv, "o:b:t:s:" CMD_SHORT, options,
			NULL)) != -1)
		read_option(&r, opt);
	if (argc - optind < 2)
		cmd_usage("run: a model and its data");
	rc = dl_blas_load(&e);
	if (!rc)
		rc = dl_ranks_join(&r.training.ranks, &e);
	if (rc)
		return cmd_fail(&e);
	rank = dl_ranks_rank(r.training.ranks);
	if (!rank)
		check_use(&r, socket);
	catch_signals();
	rc = train_job_open(&r.job, argv[optind], r.config, argv + optind + 1,
		(size_t)(argc - optind - 1), r.held_out, &r.training, &e);
	if (!rc)
		rc = run(&r, socket, &e);
	train_job_close(&r.job);
	dl_ranks_leave(r.training.ranks);
	return rc && !rank ? cmd_fail(&e) : rc;
}
