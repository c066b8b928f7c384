#include "cmd/learn/say.h"

#include <stdlib.h>

#include "base/mem.h"
#include "cmd/learn/learner.h"

/* No syncer reads more in a hello; who says none is sent all. */
enum { VERSIONS_MAX = 3072 };

/* All that are known here, with spaces between. */
static void put_codecs(struct dl_buf *out)
{
	for (int i = 0; i < DL_CODECS; i++)
		dl_buf_printf(out, "%s%s", i ? " " : "",
			dl_codec_name((enum dl_codec)i));
}

void say_hello(struct learner *l)
{
	uint32_t fragments = l->core ? l->layout.fragments : 0;
	struct dl_version *versions =
		dl_alloc_array(fragments ? fragments : 1, sizeof *versions);
	struct dl_buf codecs = DL_BUF_INIT;
	struct dl_message m = {.kind = DL_MSG_HELLO,
		.role = DL_ROLE_LEARNER,
		.run = l->run,
		.name = l->name,
		.instance = l->instance,
		.layout = l->core ? l->layout.hash : "",
		.serve = serving_offer(l),
		.fragments = fragments,
		.versions = versions};
	struct dl_learn_info info;

	if (l->options->data.streams > 1) {
		m.streams = l->options->data.streams;
		m.window = l->options->data.window;
	}

	if (l->core) {
		dl_learn_info(l->core, &info);
		m.clock = info.clock;
		m.steps = info.steps;
		m.tokens = info.tokens;
		for (uint32_t p = 0; p < fragments; p++)
			versions[p] = dl_learn_version(l->core, p);
	}
	if (!l->core)
		donated_hello(l, &m);
	if (m.fragments > VERSIONS_MAX)
		m.fragments = 0;
	put_codecs(&codecs);
	m.codecs = dl_buf_cstr(&codecs);
	dl_conn_send(&l->uplink.conn, &m);
	dl_buf_free(&codecs);
	free(versions);
}

void say_leaving(struct learner *l)
{
	struct dl_message m = {.kind = DL_MSG_END};

	dl_conn_send(&l->uplink.conn, &m);
}
