#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/output.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/dl-sync.h"
#include "cmd/fetch/take.h"
#include "cmd/key.h"
#include "cmd/link.h"
#include "state/checkpoint.h"

enum { INSECURE = 256, KEY };

struct visit {
	struct client client;
	struct take take;
	int stated; /* how large it is */
};

static int on_state(
	struct visit *v, const struct dl_message *m, struct dl_err *e)
{
	if (v->stated)
		return dl_fail(e, DL_PROTOCOL, "state comes twice");
	v->stated = 1;
	take_range(&v->take, 0, m->bytes);
	take_ask(&v->take, &v->client.conn);
	return 0;
}

static int on_message(void *ctx, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e)
{
	struct visit *v = ctx;

	(void)c;
	switch (m->kind) {
	case DL_MSG_ERROR:
		return client_refused(m, e);
	case DL_MSG_BYE:
		return dl_fail(e, DL_TEMPFAIL, "the syncer is leaving");
	case DL_MSG_STATE:
		return on_state(v, m, e);
	default:
		return 0;
	}
}

static int on_begin(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	struct visit *v = ctx;

	(void)c;
	if (m->kind != DL_MSG_PART)
		return dl_fail(e, DL_PROTOCOL, "sends what was not asked for");
	return take_begin(&v->take, m, h, dest, e);
}

static int on_whole(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void *dest, struct dl_err *e)
{
	static const struct dl_message bye = {
		.kind = DL_MSG_BYE, .bye = DL_BYE_LEAVING};
	struct visit *v = ctx;
	int code = take_part(&v->take, c, m, e);

	(void)h;
	(void)dest;
	v->client.done = !code && take_whole_ranges(&v->take) == 1;
	if (v->client.done) {
		dl_conn_send(c, &bye);
		dl_conn_flush(c, dl_now());
	}
	return code;
}

/* Fetches one into fd. */
static int fetch(const struct dl_address *a, enum dl_insecure allowed, int fd,
	struct dl_err *e)
{
	static const struct dl_conn_handlers handlers = {
		on_message, on_begin, on_whole};
	static const struct dl_message hello = {
		.kind = DL_MSG_HELLO, .role = DL_ROLE_CHECKPOINT};
	struct visit v = {0};
	int code = client_open(&v.client, a, allowed, &handlers, &v, e);

	if (code)
		return code;
	take_init(&v.take, fd);
	dl_conn_send(&v.client.conn, &hello);
	code = client_wait(&v.client, e);
	client_close(&v.client);
	take_release(&v.take);
	return code;
}

static int copy(const char *path, struct dl_output *out, struct dl_err *e)
{
	enum { BLOCK = 1 << 16 };
	unsigned char block[BLOCK];
	int fd, code = dl_open_read(path, &fd, e);
	ssize_t n = 0;

	if (code)
		return code;
	while (!code && (n = dl_read_full(fd, block, sizeof block)) > 0)
		code = dl_output_write(out, block, (size_t)n, e);
	if (n < 0)
		code = dl_fail_sys(e, DL_IOERR, "%s", path);
	close(fd);
	return code;
}

/* Where it waits until it is known to be sound, if not beside its name. */
static int open_aside(struct dl_output *o, struct dl_err *e)
{
	const char *folder = getenv("TMPDIR");
	char *path = dl_sprintf("%s/dl-checkpoint.%ld",
		folder && *folder ? folder : "/tmp", (long)getpid());
	int code = dl_output_open(o, path, e);

	free(path);
	return code;
}

static int bring(const struct dl_address *a, enum dl_insecure allowed,
	const char *file, struct dl_err *e)
{
	struct dl_output out, aside = DL_OUTPUT_INIT, *to = &out;
	struct dl_checkpoint_info info;
	int code = dl_output_open(&out, file, e);

	if (!code && !dl_output_temp(&out)) {
		to = &aside;
		code = open_aside(to, e);
	}
	if (!code)
		code = fetch(a, allowed, to->fd, e);
	if (!code)
		code = dl_checkpoint_check(dl_output_temp(to), &info, e);
	if (!code && to == &aside)
		code = copy(dl_output_temp(to), &out, e);
	if (!code)
		code = dl_output_commit(&out, e);
	dl_output_abort(&out);
	dl_output_abort(&aside);
	if (!code)
		cmd_debug("%s: run %s, epoch %llu, clock %llu", file,
			info.run.name, (unsigned long long)info.epoch,
			(unsigned long long)info.clock);
	return code;
}

int sync_checkpoint(int argc, char **argv)
{
	static const struct option options[] = {
		{"key", required_argument, NULL, KEY},
		{"insecure", no_argument, NULL, INSECURE}, CMD_LONG,
		{NULL, 0, NULL, 0}};
	enum dl_insecure allowed = DL_INSECURE_NO;
	const char *key_file = NULL;
	struct dl_address address;
	struct dl_key *key;
	struct dl_err e;
	int opt, code;

	while ((opt = getopt_long(argc, argv, "+" CMD_SHORT, options, NULL)) !=
		-1) {
		if (opt == KEY)
			key_file = optarg;
		else if (opt == INSECURE)
			link_insecure(&allowed);
		else
			cmd_common_option(opt);
	}
	if (argc - optind != 2)
		cmd_usage("checkpoint: a link and a file");
	if (dl_address_parse(&address, argv[optind], &e))
		cmd_usage("%s", e.text);
	if (address.kind == DL_LINK_DIR)
		cmd_usage("%s: a folder answers nothing here", argv[optind]);
	link_allow(&address, 1, allowed);
	dl_output_on_signal();
	key = key_use(key_file, &address, 1);
	code = bring(&address, allowed, argv[optind + 1], &e);
	dl_key_free(key);
	return code ? cmd_fail(&e) : DL_OK;
}
