#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cmd/attach/first.h"
#include "cmd/cmd.h"
#include "cmd/dl-sync.h"
#include "link/address.h"
#include "link/bridge.h"
#include "link/frame.h"

enum { AS = 256, ALLOW };

/* Says why in the peer's language too: it may see nothing of our stderr. */
static int refuse(const struct dl_err *why)
{
	struct dl_message m = {
		.kind = DL_MSG_ERROR, .code = why->code, .text = why->text};
	unsigned char head[DL_FRAME_HEAD];
	struct dl_buf record = DL_BUF_INIT;

	dl_message_pack(&m, &record);
	dl_frame_head(head, DL_CHANNEL_CONTROL, record.len);
	if (!dl_write_full(STDOUT_FILENO, head, sizeof head))
		(void)!dl_write_full(STDOUT_FILENO, record.data, record.len);
	dl_buf_free(&record);
	return cmd_fail(why);
}

static int attach(const struct dl_address *a, const struct attach_rule *rule)
{
	struct dl_buf bytes = DL_BUF_INIT;
	struct dl_child none;
	struct dl_err e;
	int peer = -1;
	int code = attach_first(STDIN_FILENO, rule, &bytes, &e);

	if (!code)
		code = dl_address_connect(a, DL_INSECURE_NO, &peer, &none, &e);
	if (code)
		code = refuse(&e);
	else if (dl_bridge_run(STDIN_FILENO, STDOUT_FILENO, peer, &bytes, &e))
		code = cmd_fail(&e);
	if (peer >= 0)
		close(peer);
	dl_buf_free(&bytes);
	return code;
}

static void allow(struct attach_rule *rule, const char *role)
{
	if (strcmp(role, "observer") == 0)
		rule->allowed[DL_ROLE_OBSERVER] =
			rule->allowed[DL_ROLE_CHECKPOINT] =
				rule->allowed[DL_ROLE_WATCHER] = 1;
	else if (strcmp(role, "ender") == 0)
		rule->allowed[DL_ROLE_ENDER] = 1;
	else
		cmd_usage("--allow %s: not observer or ender", role);
}

/* unix:PATH, or just the path. */
static void read_socket(struct dl_address *a, const char *s)
{
	int bare = *s == '/' || !strchr(s, ':');
	char *link = dl_sprintf("%s%s", bare ? "unix:" : "", s);
	struct dl_err e;

	if (dl_address_parse(a, link, &e))
		cmd_usage("%s", e.text);
	if (a->kind != DL_LINK_UNIX)
		cmd_usage("%s: not unix:PATH", s);
	free(link);
}

int sync_attach(int argc, char **argv)
{
	static const struct option options[] = {
		{"as", required_argument, NULL, AS},
		{"allow", required_argument, NULL, ALLOW}, CMD_LONG,
		{NULL, 0, NULL, 0}};
	struct attach_rule rule = {0};
	struct dl_address address;
	int opt;

	while ((opt = getopt_long(argc, argv, "+" CMD_SHORT, options, NULL)) !=
		-1)
		switch (opt) {
		case AS:
			if (!dl_name_ok(optarg, strlen(optarg)))
				cmd_usage("--as %s: not a name", optarg);
			rule.name = optarg;
			break;
		case ALLOW:
			allow(&rule, optarg);
			break;
		default:
			cmd_common_option(opt);
		}
	if (argc - optind != 1)
		cmd_usage("attach: one socket");
	read_socket(&address, argv[optind]);
	signal(SIGPIPE, SIG_IGN);
	return attach(&address, &rule);
}
