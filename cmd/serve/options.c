#include "cmd/serve/options.h"

#include <string.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/key.h"
#include "link/stripe.h"

enum {
	LISTEN = SYNC_OPTIONS,
	FROM,
	TAPE,
	RECORD,
	COMMIT,
	CHECKPOINT,
	CHECKPOINT_EVERY,
	CHECKPOINT_KEEP,
	KEY,
	AUTHORIZED,
	MAX_LEARNERS,
	INSECURE
};

/* Unless given. */
enum { STREAMS = 8, KEEP = 3 };
static const int64_t every = 600 * DL_SECOND;

static const char shorts[] = "+" SYNC_SHORT CMD_SHORT;
static const struct option longs[] = {
	{"listen", required_argument, NULL, LISTEN},
	{"from", required_argument, NULL, FROM},
	{"tape", required_argument, NULL, TAPE},
	{"record", required_argument, NULL, RECORD},
	{"commit", required_argument, NULL, COMMIT},
	{"checkpoint", required_argument, NULL, CHECKPOINT},
	{"checkpoint-every", required_argument, NULL, CHECKPOINT_EVERY},
	{"checkpoint-keep", required_argument, NULL, CHECKPOINT_KEEP},
	{"key", required_argument, NULL, KEY},
	{"authorized", required_argument, NULL, AUTHORIZED},
	{"max-learners", required_argument, NULL, MAX_LEARNERS},
	{"insecure", no_argument, NULL, INSECURE},
	LINK_LONG,
	DATA_LONG,
	SYNC_LONG,
	CMD_LONG,
	{NULL, 0, NULL, 0},
};

static void take_listen(struct serve_options *o, const char *s)
{
	struct dl_err e;

	if (o->listens == LISTEN_MAX)
		cmd_usage("--listen: more than %d", LISTEN_MAX);
	if (dl_address_parse(&o->listen[o->listens++], s, &e))
		cmd_usage("%s", e.text);
}

/* Without a unit it is steps. */
static void take_every(struct checkpoint_options *c, const char *s)
{
	c->every_ns = 0;
	c->every_steps = 0;
	if (s[strspn(s, "0123456789")])
		c->every_ns = cmd_period("--checkpoint-every", s);
	else
		c->every_steps =
			cmd_u64("--checkpoint-every", s, 1, UINT64_MAX / 2);
}

static void check_checkpoint(struct checkpoint_options *c)
{
	if (!c->folder && (c->every_ns || c->every_steps || c->keep))
		cmd_usage("--checkpoint-every, --checkpoint-keep: where to "
			  "--checkpoint?");
	if (!c->every_ns && !c->every_steps)
		c->every_ns = every;
	if (!c->keep)
		c->keep = KEEP;
}

static void read_option(struct serve_options *o, int opt)
{
	switch (opt) {
	case LISTEN:
		take_listen(o, optarg);
		break;
	case FROM:
		o->from = optarg;
		break;
	case TAPE:
		o->tape = optarg;
		break;
	case RECORD:
		o->record = optarg;
		break;
	case COMMIT:
		o->commit = cmd_u64("--commit", optarg, 1, UINT32_MAX);
		break;
	case CHECKPOINT:
		o->checkpoint.folder = optarg;
		break;
	case CHECKPOINT_EVERY:
		take_every(&o->checkpoint, optarg);
		break;
	case CHECKPOINT_KEEP:
		o->checkpoint.keep =
			cmd_u64("--checkpoint-keep", optarg, 1, UINT32_MAX);
		break;
	case KEY:
		o->key_file = optarg;
		break;
	case AUTHORIZED:
		o->authorized = optarg;
		break;
	case MAX_LEARNERS:
		o->learners =
			cmd_u64("--max-learners", optarg, 1, LEARNERS_MAX);
		break;
	case INSECURE:
		link_insecure(&o->insecure);
		break;
	default:
		if (!sync_option(&o->sync, opt) && !link_option(&o->tcp, opt) &&
			!data_option(&o->data, opt))
			cmd_common_option(opt);
	}
}

/* Either every tcp listener is a session's, or none is. */
static void check_session(const struct serve_options *o)
{
	if (o->key_file && o->insecure)
		cmd_usage("--key and --insecure: one or the other");
	if (!o->key_file)
		link_allow(o->listen, o->listens, o->insecure);
	if (o->key_file && !o->authorized)
		cmd_usage("--key: who is --authorized?");
	if (o->authorized && !o->key_file)
		cmd_usage("--authorized: needs --key");
	for (size_t i = 0; i < o->listens && !o->key_file && !o->insecure; i++)
		if (o->listen[i].kind == DL_LINK_TCP)
			cmd_usage("--listen: sessions need --key and "
				  "--authorized, plain tcp --insecure");
}

void serve_options_read(struct serve_options *o, int argc, char **argv)
{
	int opt;

	*o = (struct serve_options){
		.commit = 1,
		.learners = LEARNERS,
		.data = {.streams = STREAMS}};
	sync_options_begin(&o->sync, argc, argv, shorts, longs);
	while ((opt = getopt_long(argc, argv, shorts, longs, NULL)) != -1)
		read_option(o, opt);
	if (argc - optind > 1)
		cmd_usage("serve: more than one model");
	o->sync.model = argv[optind];
	if (o->from && o->sync.model)
		cmd_usage("serve: --from and a model: one or the other");
	if (!o->sync.store)
		cmd_usage("serve: where is the --store?");
	if (!o->listens)
		cmd_usage("serve: where to --listen?");
	link_set_up(o->listen, o->listens, &o->tcp);
	check_session(o);
	check_checkpoint(&o->checkpoint);
	if (o->record && o->commit > 1)
		cmd_usage("--record: a merge that is not committed cannot be "
			  "made again, --commit is 1 with it");
	data_check(&o->data);
	o->key = key_use_to_listen(o->key_file, o->listen, o->listens);
}
