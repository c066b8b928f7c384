#include "cmd/learn/serving.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/learn/learner.h"
#include "cmd/learn/visitor.h"

static const int64_t accept_pause = DL_SECOND / 5;

/* Anywhere on this machine: the syncer sees at which address others find it. */
static int is_any(const char *host)
{
	return !strcmp(host, "0.0.0.0") || !strcmp(host, "::");
}

int serving_begin(struct learner *l, struct dl_err *e)
{
	struct serving *s = &l->serving;
	struct dl_address public;
	int code;

	export_init(&s->file);
	s->listener = -1;
	if (!l->options->serves)
		return 0;
	s->rate.bytes = l->options->serve_rate;
	s->address = l->options->serve;
	code = dl_address_listen(&s->address, DL_INSECURE_NO, &s->listener, e);
	if (code)
		return code;
	s->errands = dl_errands_new(&l->loop, e);
	if (!s->errands)
		return e->code;
	public = s->address;
	public.keyed = 1;
	memcpy(public.key, s->address.own->public, DL_KEY);
	if (is_any(public.host))
		*public.host = '\0';
	dl_address_print(s->offer, &public);
	return 0;
}

void serving_release(struct learner *l)
{
	struct serving *s = &l->serving;

	visitors_free(l);
	dl_errands_free(s->errands);
	export_release(&s->file);
	if (s->listener >= 0)
		dl_address_unlisten(&s->address, s->listener);
}

const char *serving_offer(const struct learner *l)
{
	const struct serving *s = &l->serving;

	return s->listener >= 0 && s->file.state != EXPORT_FAILED ? s->offer
								  : NULL;
}

void serving_guest(struct learner *l, const struct dl_message *m, int64_t now)
{
	struct serving *s = &l->serving;
	unsigned char key[DL_KEY];

	if (s->listener < 0 || dl_key_parse(key, m->key, strlen(m->key), NULL))
		return;
	cmd_debug("%s may come for the state", m->name);
	guests_add(&s->guests, m->name, key, now);
}

/* Sources that come too often are not taken in, and of those who never say
 * who they are the oldest goes. */
static void take_in(struct learner *l, int fd, int64_t now)
{
	struct sockaddr_storage name = {0};
	socklen_t n = sizeof name;

	if (getpeername(fd, (struct sockaddr *)&name, &n) ||
		!dl_door_knock(
			&l->serving.door, (struct sockaddr *)&name, now)) {
		close(fd);
		return;
	}
	visitors_make_room(l);
	visitor_enter(l, fd, now);
}

static void on_listener(void *ctx, int listener, short revents)
{
	struct learner *l = ctx;
	int64_t now = dl_now();
	struct dl_err e;
	int fd;

	(void)revents;
	for (;;) {
		if (dl_address_accept(listener, &fd, &e)) {
			l->serving.accept_at = now + accept_pause;
			return;
		}
		if (fd < 0)
			return;
		take_in(l, fd, now);
	}
}

void serving_work(struct learner *l, int64_t now)
{
	struct serving *s = &l->serving;
	int open = l->core && !l->finishing && now >= s->accept_at;

	if (s->listener < 0)
		return;
	visitors_work(l, now);
	dl_loop_set(&l->loop, s->listener, open ? POLLIN : 0, on_listener, l);
}

int64_t serving_wake(const struct learner *l, int64_t now)
{
	const struct serving *s = &l->serving;
	int64_t wake = visitors_wake(l);
	int64_t file = s->visitor ? export_wake(&s->file, now) : INT64_MAX;

	if (now < s->accept_at && s->accept_at < wake)
		wake = s->accept_at;
	return file < wake ? file : wake;
}
