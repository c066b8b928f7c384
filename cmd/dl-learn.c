#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/spawn.h"
#include "cmd/check/check.h"
#include "cmd/cmd.h"
#include "cmd/codec.h"
#include "cmd/key.h"
#include "cmd/learn/apply.h"
#include "cmd/learn/learner.h"

static const char usage[] =
	"usage: dl-learn [-qv] [-n name] [--slot n] [-s seed] [--push codec]\n"
	"                [--apply how] [--wait | --no-wait]\n"
	"                [--heartbeat duration] [--poll duration]\n"
	"                [--give-up duration] [--drain duration]\n"
	"                [--stop-timeout duration] [--step-timeout duration]\n"
	"                [--scratch folder]\n"
	"                [--save-every steps | time] [--state folder]\n"
	"                [--key file] [--join from]\n"
	"                [--serve address] [--serve-max n] [--serve-rate "
	"rate]\n"
	"                [--streams n]\n"
	"                [--window size] [--rate rate] [--buffers size]\n"
	"                [--congestion name] [--insecure] link -- command ...\n"
	"       dl-learn --check [-n name] [--slot n] [-s seed]\n"
	"                [--layout file] [--stop-timeout duration]\n"
	"                [--step-timeout duration] [--scratch folder]\n"
	"                model -- command ...\n"
	"       dl-learn -h | -V\n"
	"  -n, --name name  -s, --seed seed\n"
	"  -h, --help  -V, --version  -q, --quiet  -v, --verbose\n";

enum {
	SLOT = 256,
	PUSH,
	APPLY,
	WAIT,
	NO_WAIT,
	HEARTBEAT,
	POLL,
	GIVE_UP,
	DRAIN,
	STOP_TIMEOUT,
	STEP_TIMEOUT,
	SCRATCH,
	SAVE_EVERY,
	STATE,
	KEY,
	JOIN,
	SERVE,
	SERVE_MAX,
	SERVE_RATE,
	INSECURE,
	CHECK,
	LAYOUT,
};

/* How long a trainer may owe a line; who waits for the answer is less patient
 * than a run. */
static const int64_t silence = 600 * DL_SECOND, check_silence = 60 * DL_SECOND;

/* How many take its state at once, and how many may. */
enum { SERVED = 2, SERVED_MOST = 64 };

static const struct option options[] = {
	{"name", required_argument, NULL, 'n'},
	{"slot", required_argument, NULL, SLOT},
	{"seed", required_argument, NULL, 's'},
	{"push", required_argument, NULL, PUSH},
	{"apply", required_argument, NULL, APPLY},
	{"wait", no_argument, NULL, WAIT},
	{"no-wait", no_argument, NULL, NO_WAIT},
	{"heartbeat", required_argument, NULL, HEARTBEAT},
	{"poll", required_argument, NULL, POLL},
	{"give-up", required_argument, NULL, GIVE_UP},
	{"drain", required_argument, NULL, DRAIN},
	{"stop-timeout", required_argument, NULL, STOP_TIMEOUT},
	{"step-timeout", required_argument, NULL, STEP_TIMEOUT},
	{"scratch", required_argument, NULL, SCRATCH},
	{"save-every", required_argument, NULL, SAVE_EVERY},
	{"state", required_argument, NULL, STATE},
	{"key", required_argument, NULL, KEY},
	{"join", required_argument, NULL, JOIN},
	{"serve", required_argument, NULL, SERVE},
	{"serve-max", required_argument, NULL, SERVE_MAX},
	{"serve-rate", required_argument, NULL, SERVE_RATE},
	{"insecure", no_argument, NULL, INSECURE},
	{"check", no_argument, NULL, CHECK},
	{"layout", required_argument, NULL, LAYOUT},
	LINK_LONG,
	DATA_LONG,
	CMD_LONG,
	{NULL, 0, NULL, 0},
};

static void set_name(struct learn_options *o, const char *name)
{
	if (!dl_name_ok(name, strlen(name)))
		cmd_usage("--name %s: not 1 to %d of A-Z a-z 0-9 . _ -, "
			  "without a dot in front",
			name, DL_NAME_MAX);
	strcpy(o->name, name);
}

static void set_join(struct learn_options *o, const char *from)
{
	o->join = strcmp(from, "peers") == 0;
	if (!o->join && strcmp(from, "syncer") != 0)
		cmd_usage("--join %s: not peers or syncer", from);
}

static void set_serve(struct learn_options *o, const char *address)
{
	struct dl_err e;

	if (dl_address_parse(&o->serve, address, &e))
		cmd_usage("--serve: %s", e.text);
	if (o->serve.kind != DL_LINK_TCP || o->serve.keyed)
		cmd_usage("--serve: tcp:HOST:PORT only");
	o->serves = 1;
}

/* The host's name, with what a learner's name cannot hold left out. */
static void default_name(struct learn_options *o)
{
	char host[DL_NAME_MAX + 1] = "", *at = o->name;

	gethostname(host, sizeof host - 1);
	for (const char *s = host; *s; s++)
		if (isalnum((unsigned char)*s) || *s == '-' ||
			(*s == '.' && at > o->name))
			*at++ = *s;
	*at = '\0';
	if (!dl_name_ok(o->name, strlen(o->name)))
		strcpy(o->name, "learner");
}

static void read_option(struct learn_options *o, int opt)
{
	enum dl_apply apply;
	double alpha;

	switch (opt) {
	case 'n':
		set_name(o, optarg);
		break;
	case 's':
		o->seed = cmd_u64("--seed", optarg, 0, UINT64_MAX);
		break;
	case SLOT:
		o->slot = cmd_u64("--slot", optarg, 0, DL_SLOT_NONE - 1);
		break;
	case PUSH:
		o->push = cmd_codec("--push", optarg);
		break;
	case APPLY:
		if (learn_parse_apply(optarg, &apply, &alpha))
			cmd_usage("--apply %s: not overwrite, carry or blend:A",
				optarg);
		o->apply = optarg;
		break;
	case WAIT:
	case NO_WAIT:
		o->wait = opt == WAIT;
		break;
	case HEARTBEAT:
		o->heartbeat_ns = cmd_period("--heartbeat", optarg);
		break;
	case POLL:
		o->poll_ns = cmd_period("--poll", optarg);
		break;
	case GIVE_UP:
		o->give_up_ns = cmd_duration("--give-up", optarg);
		break;
	case DRAIN:
		o->drain_ns = cmd_duration("--drain", optarg);
		break;
	case STOP_TIMEOUT:
		o->stop_ns = cmd_duration("--stop-timeout", optarg);
		break;
	case STEP_TIMEOUT:
		o->silence_ns = cmd_period("--step-timeout", optarg);
		break;
	case SCRATCH:
		o->scratch = optarg;
		break;
	case SAVE_EVERY:
		cmd_every("--save-every", optarg, &o->save_steps, &o->save_ns);
		break;
	case STATE:
		o->state = optarg;
		break;
	case KEY:
		o->key = optarg;
		break;
	case JOIN:
		set_join(o, optarg);
		break;
	case SERVE:
		set_serve(o, optarg);
		break;
	case SERVE_MAX:
		o->serve_max = cmd_u64("--serve-max", optarg, 1, SERVED_MOST);
		break;
	case SERVE_RATE:
		o->serve_rate = cmd_rate("--serve-rate", optarg);
		break;
	case CHECK:
		o->check = 1;
		break;
	case LAYOUT:
		o->layout = optarg;
		break;
	case INSECURE:
		link_insecure(&o->insecure);
		break;
	default:
		if (!link_option(&o->tcp, opt) && !data_option(&o->data, opt))
			cmd_common_option(opt);
	}
}

static void check_join(struct learn_options *o)
{
	enum dl_link_kind kind = o->address.kind;
	int able = kind == DL_LINK_TCP || kind == DL_LINK_UNIX;

	if (o->join > 0 && (!able || !o->own))
		cmd_usage("--join peers: needs --key, and tcp or unix");
	if (o->join < 0)
		o->join = able && o->own;
}

static void check_serve(struct learn_options *o)
{
	enum dl_link_kind kind = o->address.kind;

	if ((o->serve_max || o->serve_rate) && !o->serves)
		cmd_usage("--serve-max, --serve-rate: with --serve only");
	if (o->serves &&
		(!o->own || (kind != DL_LINK_TCP && kind != DL_LINK_UNIX)))
		cmd_usage("--serve: needs --key, and tcp or unix");
	o->serve.own = o->own;
	if (!o->serve_max)
		o->serve_max = SERVED;
}

/* What only one kind of link has. */
static void check_times(struct learn_options *o)
{
	if (o->poll_ns && o->address.kind != DL_LINK_DIR)
		cmd_usage("--poll: for folders only");
	if (o->heartbeat_ns && o->address.kind == DL_LINK_DIR)
		cmd_usage("--heartbeat: not for folders");
	if (!o->silence_ns)
		o->silence_ns = silence;
	if (!o->poll_ns)
		o->poll_ns = DL_SECOND;
	if (!o->heartbeat_ns)
		o->heartbeat_ns = 2 * DL_SECOND;
}

static void check_data(struct learn_options *o)
{
	enum dl_link_kind kind = o->address.kind;

	if (o->data.streams > 1 && kind != DL_LINK_TCP && kind != DL_LINK_UNIX)
		cmd_usage("--streams: for tcp and unix only");
	if (o->data.rate && kind == DL_LINK_DIR)
		cmd_usage("--rate: not for folders");
	data_check(&o->data);
}

static const int64_t save_period = 600 * DL_SECOND; /* of --state */

/* Makes the folder, and finds the name that it has wherever a trainer goes. */
static char *take_state(struct learn_options *o)
{
	struct dl_err e;
	char *path;
	int code;

	if (!o->state)
		return NULL;
	code = dl_make_folder(o->state, &e);
	if (code)
		exit(cmd_fail(&e));
	path = realpath(o->state, NULL);
	if (!path)
		cmd_die(DL_CANTCREAT, "%s: %s", o->state, strerror(errno));
	/* Trainers get it in a line of words. */
	if (strpbrk(path, " \n"))
		cmd_usage("--state %s: a space or a newline is in its name",
			o->state);
	o->state = path;
	if (!o->save_steps && !o->save_ns)
		o->save_ns = save_period;
	return path;
}

/* Does that option mean anything to a check? */
static int is_for_check(int opt)
{
	switch (opt) {
	case 'n':
	case 's':
	case SLOT:
	case STOP_TIMEOUT:
	case STEP_TIMEOUT:
	case SCRATCH:
	case CHECK:
	case LAYOUT:
	case 'h':
	case 'V':
	case 'q':
	case 'v':
		return 1;
	default:
		return 0;
	}
}

static void read_options(struct learn_options *o, int argc, char **argv)
{
	int opt, other = 0;

	while ((opt = getopt_long(
			argc, argv, "+n:s:" CMD_SHORT, options, NULL)) != -1) {
		read_option(o, opt);
		other |= !is_for_check(opt);
	}
	if (o->check && other)
		cmd_usage("--check: there is no syncer, and so no options for "
			  "one");
	if (!o->check && o->layout)
		cmd_usage("--layout: for --check only");
	if (argc - optind < 1)
		cmd_usage(o->check ? "no model" : "no link to a syncer");
}

/* The command, after what comes before it at optind. */
static void read_command(struct learn_options *o, int argc, char **argv)
{
	optind++;
	if (optind < argc && strcmp(argv[optind], "--") == 0)
		optind++;
	else if (optind < argc && *argv[optind] == '-')
		cmd_usage("%s: options stand before the %s", argv[optind],
			o->check ? "model" : "link");
	if (optind >= argc)
		cmd_usage("no command to train with");
	o->command = argv + optind;
	/* Who has a key is called what goes with it. */
	if (!*o->name && !o->key)
		default_name(o);
}

static int check(const struct learn_options *o, const char *model)
{
	struct check_options c = {.model = model,
		.layout = o->layout,
		.command = o->command,
		.name = o->name,
		.slot = o->slot == DL_SLOT_NONE ? 0 : o->slot,
		.seed = o->seed,
		.scratch = o->scratch,
		.stop_ns = o->stop_ns,
		.silence_ns = o->silence_ns ? o->silence_ns : check_silence};
	struct dl_err e;

	return dl_spawn_check(*c.command, &e) ? cmd_fail(&e) : check_run(&c);
}

static int learn(
	struct learn_options *o, const char *link, int argc, char **argv)
{
	struct dl_key *key;
	struct dl_err e;
	char *state;
	int code;

	if (dl_address_parse(&o->address, link, &e))
		cmd_usage("%s", e.text);
	link_set_up(&o->address, 1, &o->tcp);
	link_allow(&o->address, 1, o->insecure);
	key = key_use_with_peers(o->key, &o->address, 1);
	o->own = key;
	check_join(o);
	check_serve(o);
	check_data(o);
	check_times(o);
	read_command(o, argc, argv);
	state = take_state(o);
	/* Nobody need hear of a learner that cannot train. */
	code = dl_spawn_check(*o->command, &e) ? cmd_fail(&e) : learner_run(o);
	dl_key_free(key);
	free(state);
	return code;
}

int main(int argc, char **argv)
{
	struct learn_options o = {.insecure = DL_INSECURE_NO,
		.wait = -1,
		.join = -1,
		.slot = DL_SLOT_NONE,
		.give_up_ns = 24 * 3600 * DL_SECOND,
		.drain_ns = 20 * DL_SECOND,
		.stop_ns = 30 * DL_SECOND};
	const char *first;

	cmd_init("dl-learn", usage);
	read_options(&o, argc, argv);
	first = argv[optind];
	if (!o.check)
		return learn(&o, first, argc, argv);
	read_command(&o, argc, argv);
	return check(&o, first);
}
