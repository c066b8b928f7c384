#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/frag.h"
#include "tensor/layout.h"

enum { SKIP = 256, RULE, ALIAS };

struct choices {
	struct dl_plan_choice *choice;
	size_t n;
};

static struct dl_plan_choice *new_choice(struct choices *c)
{
	c->choice = dl_resize(c->choice, c->n + 1, sizeof *c->choice);
	memset(&c->choice[c->n], 0, sizeof *c->choice);
	return &c->choice[c->n++];
}

/* Cuts "PATTERN=RULE" at its last = and "NAME=TARGET" at its first. */
static void add_choice(struct choices *c, int opt, char *arg)
{
	struct dl_plan_choice *choice = new_choice(c);
	char *equal = opt == RULE ? strrchr(arg, '=') : strchr(arg, '=');
	int rule;

	choice->pattern = arg;
	choice->skip = opt == SKIP;
	if (opt == SKIP)
		return;
	if (!equal)
		cmd_usage("%s: no = in it", arg);
	*equal++ = 0;
	choice->rule = DL_ALIAS;
	choice->alias = equal;
	if (opt == ALIAS)
		return;
	rule = dl_rule_parse(equal, strlen(equal));
	if (rule < 0 || rule == DL_ALIAS)
		cmd_usage("--rule %s=%s: not rda, mean, stat or last", arg,
			equal);
	choice->rule = (enum dl_rule)rule;
	choice->alias = NULL;
}

/* A pattern without effect is most likely a slip. */
static void warn_unused(const struct choices *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (!c->choice[i].matched)
			cmd_warn("no tensor matches %s", c->choice[i].pattern);
}

static int plan(const char *path, const struct dl_plan_options *o,
	const struct choices *c)
{
	struct dl_buf text = DL_BUF_INIT;
	struct dl_model m;
	struct dl_layout l = {0};
	struct dl_err e;
	int rc = dl_model_open_headers(&m, path, &e);

	if (!rc) {
		rc = dl_layout_plan(&l, &m, o, &e);
		warn_unused(c);
		if (rc)
			dl_at(&e, "%s", path);
	}
	if (!rc) {
		if (l.fragments < o->fragments)
			cmd_note("%u fragments: there is not enough to fill "
				 "%u",
				l.fragments, o->fragments);
		dl_layout_write(&l, &text);
		rc = dl_write_file("-", text.data, text.len, &e);
	}
	dl_buf_free(&text);
	dl_layout_release(&l);
	dl_model_close(&m);
	return rc ? cmd_fail(&e) : 0;
}

int frag_plan(int argc, char **argv)
{
	static const struct option options[] = {
		{"fragments", required_argument, NULL, 'n'},
		{"strategy", required_argument, NULL, 's'},
		{"rule", required_argument, NULL, RULE},
		{"skip", required_argument, NULL, SKIP},
		{"alias", required_argument, NULL, ALIAS}, CMD_LONG, {0}};
	struct dl_plan_options o = {.fragments = 24};
	struct choices c = {NULL, 0};
	int opt, rc;

	while ((opt = getopt_long(argc, argv, "n:s:" CMD_SHORT, options, NULL))
		!= -1)
		switch (opt) {
		case 'n':
			o.fragments = (uint32_t)cmd_u64("-n", optarg, 1,
				1000000);
			break;
		case 's':
			if (dl_strategy_parse(optarg, &o.strategy))
				cmd_usage("-s %s: not balanced, tensor, layer "
					  "or strided",
					optarg);
			break;
		case RULE:
		case SKIP:
		case ALIAS:
			add_choice(&c, opt, optarg);
			break;
		default:
			cmd_common_option(opt);
		}
	if (argc - optind > 1)
		cmd_usage("plan takes one model");
	o.choice = c.choice;
	o.choices = c.n;
	rc = plan(optind < argc ? argv[optind] : "-", &o, &c);
	free(c.choice);
	return rc;
}
