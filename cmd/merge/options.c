#include "cmd/merge/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "cmd/cmd.h"

enum { RULE = 256, OUTER_LR, MOMENTUM, NESTEROV, NO_NESTEROV, THREADS };

static const struct option options[] = {
	{"layout", required_argument, NULL, 'l'},
	{"no-outer", no_argument, NULL, 'n'},
	{"output", required_argument, NULL, 'o'},
	{"state", required_argument, NULL, 's'},
	{"update", required_argument, NULL, 'u'},
	{"weight", required_argument, NULL, 'w'},
	{"rule", required_argument, NULL, RULE},
	{"outer-lr", required_argument, NULL, OUTER_LR},
	{"momentum", required_argument, NULL, MOMENTUM},
	{"nesterov", no_argument, NULL, NESTEROV},
	{"no-nesterov", no_argument, NULL, NO_NESTEROV},
	{"threads", required_argument, NULL, THREADS},
	CMD_ZSTD_LONG,
	CMD_LONG,
	{NULL, 0, NULL, 0},
};

static void take_weight(struct merge_options *o, const char *s)
{
	const char *equal = strrchr(s, '=');
	struct merge_weight *w;

	o->weight = dl_resize(o->weight, o->weights + 1, sizeof *o->weight);
	w = &o->weight[o->weights++];
	*w = (struct merge_weight){0};
	if (!equal || equal == s ||
		dl_parse_double(equal + 1, 0, HUGE_VAL, &w->weight) ||
		isinf(w->weight))
		cmd_usage("-w %s: not NAME=WEIGHT", s);
	w->name = dl_strndup(s, (size_t)(equal - s));
	for (size_t i = 0; i + 1 < o->weights; i++)
		if (!strcmp(o->weight[i].name, w->name))
			cmd_usage("-w %s: that name again", s);
}

static void take_rule(struct merge_options *o, const char *s)
{
	int rule = dl_rule_parse(s, strlen(s));

	if (rule != DL_RDA && rule != DL_MEAN)
		cmd_usage("--rule %s: not rda or mean", s);
	o->rule = (enum dl_rule)rule;
}

/* How deltas become an update, and the update a step. */
static void read_step(struct merge_options *o, int opt)
{
	switch (opt) {
	case 'w':
		take_weight(o, optarg);
		break;
	case RULE:
		take_rule(o, optarg);
		break;
	case OUTER_LR:
		o->outer.lr = (float)cmd_double("--outer-lr", optarg, 0, 100);
		break;
	case MOMENTUM:
		o->outer.mu =
			(float)cmd_double("--momentum", optarg, 0, 0.9999);
		break;
	case NESTEROV:
	case NO_NESTEROV:
		o->outer.nesterov = opt == NESTEROV;
		break;
	case THREADS:
		o->threads = (unsigned)cmd_u64("--threads", optarg, 0, 1024);
		break;
	default:
		cmd_common_option(opt);
	}
}

static int is_stream(const char *path)
{
	return path && !strcmp(path, "-");
}

static void check(const struct merge_options *o)
{
	int streams = is_stream(o->base);

	for (size_t i = 0; i < o->deltas; i++)
		streams += is_stream(o->delta[i]);
	if (streams > 1)
		cmd_usage("merge: standard input can be only one of them");
	if (is_stream(o->state))
		cmd_usage("-s: momentum is kept in a file");
	if (!o->values && o->state)
		cmd_usage("-s: without an outer step there is no momentum");
	if (is_stream(o->values) && is_stream(o->update))
		cmd_usage("-u: standard output is taken");
	cmd_apart("-o", o->values, "-u", o->update);
	cmd_apart("-o", o->values, "-s", o->state);
	cmd_apart("-u", o->update, "-s", o->state);
}

void merge_options_read(struct merge_options *o, int argc, char **argv)
{
	const char *output = "-";
	int opt, outer = 1;

	*o = (struct merge_options){.rule = DL_RDA, .outer = {0.7f, 0.5f, 1}};
	while ((opt = getopt_long(argc, argv, "l:no:s:u:w:" CMD_ZSTD CMD_SHORT,
			options, NULL)) != -1)
		switch (opt) {
		case 'l':
			o->layout = optarg;
			break;
		case 'n':
			outer = 0;
			break;
		case 'o':
			output = optarg;
			break;
		case 's':
			o->state = optarg;
			break;
		case 'u':
			o->update = optarg;
			break;
		case 'z':
			o->zstd = cmd_zstd(optarg);
			break;
		default:
			read_step(o, opt);
		}
	if (argc - optind < 2)
		cmd_usage("merge takes a base and at least one delta");
	if (!outer && o->update)
		cmd_usage("-u: with -n the update is the output");
	*(outer ? &o->values : &o->update) = output;
	o->base = argv[optind];
	o->delta = argv + optind + 1;
	o->deltas = (size_t)(argc - optind - 1);
	check(o);
}

void merge_options_release(struct merge_options *o)
{
	for (size_t i = 0; i < o->weights; i++)
		free(o->weight[i].name);
	free(o->weight);
}
