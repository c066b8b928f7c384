#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/dl-sync.h"
#include "cmd/key.h"
#include "cmd/link.h"
#include "link/spool_file.h"

enum { INSECURE = 256, KEY };

struct asking {
	enum dl_insecure allowed;
	const char *key; /* a file */
};

static int on_message(void *ctx, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e)
{
	struct client *client = ctx;

	(void)c;
	if (m->kind == DL_MSG_ERROR)
		return client_refused(m, e);
	if (m->kind != DL_MSG_BYE)
		return 0;
	client->done = m->bye == DL_BYE_DONE;
	return client->done
		       ? 0
		       : dl_fail(e, DL_TEMPFAIL, "the syncer is restarting");
}

static int on_begin(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	(void)ctx;
	(void)c;
	(void)m;
	(void)h;
	(void)dest;
	return dl_fail(e, DL_PROTOCOL, "sends what was not asked for");
}

static int ask_syncer(
	const struct dl_address *a, enum dl_insecure allowed, struct dl_err *e)
{
	static const struct dl_conn_handlers handlers = {
		on_message, on_begin, NULL};
	static const struct dl_message hello = {
		.kind = DL_MSG_HELLO, .role = DL_ROLE_ENDER};
	static const struct dl_message end = {.kind = DL_MSG_END};
	struct client client;
	int code = client_open(&client, a, allowed, &handlers, &client, e);

	if (code)
		return code;
	dl_conn_send(&client.conn, &hello);
	dl_conn_send(&client.conn, &end);
	code = client_wait(&client, e);
	client_close(&client);
	return code;
}

/* A spool has nobody to ask: a file there tells the next dl-sync run. */
static int ask_folder(const char *path, struct dl_err *e)
{
	const struct iovec nothing = {NULL, 0};
	struct stat st;
	int spool, code = dl_spool_open(path, &spool, e);

	if (code)
		return code;
	if (fstatat(spool, "global/latest", &st, AT_SYMLINK_NOFOLLOW))
		code = dl_fail(e, DL_NOINPUT, "%s: is no spool", path);
	else
		code = dl_spool_put(spool, ".ender", "end", &nothing, 1, e);
	close(spool);
	return code;
}

static int is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int ask(const char *link, const struct asking *how, struct dl_err *e)
{
	struct dl_address address;
	struct dl_key *key;
	int code;

	if (is_folder(link))
		address = (struct dl_address){
			.kind = DL_LINK_DIR, .folder = link};
	else if (dl_address_parse(&address, link, e))
		cmd_usage("%s", e->text);
	link_allow(&address, 1, how->allowed);
	key = key_use(how->key, &address, 1);
	code = address.kind == DL_LINK_DIR
		       ? ask_folder(address.folder, e)
		       : ask_syncer(&address, how->allowed, e);
	dl_key_free(key);
	return code;
}

int sync_end(int argc, char **argv)
{
	static const struct option options[] = {
		{"key", required_argument, NULL, KEY},
		{"insecure", no_argument, NULL, INSECURE}, CMD_LONG,
		{NULL, 0, NULL, 0}};
	struct asking how = {DL_INSECURE_NO, NULL};
	struct dl_err e;
	int opt;

	while ((opt = getopt_long(argc, argv, "+" CMD_SHORT, options, NULL)) !=
		-1) {
		if (opt == KEY)
			how.key = optarg;
		else if (opt == INSECURE)
			link_insecure(&how.allowed);
		else
			cmd_common_option(opt);
	}
	if (argc - optind != 1)
		cmd_usage("end: one link");
	return ask(argv[optind], &how, &e) ? cmd_fail(&e) : DL_OK;
}
