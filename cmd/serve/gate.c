#include "cmd/serve/gate.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "cmd/cmd.h"
#include "cmd/serve/server.h"

/* Lines in the log: so many at once, then one a second. */
static const struct dl_allowance lines = {50, DL_SECOND};
static const int64_t count_pause = 10 * DL_SECOND;

/* Store, tape and record are written by descriptors of their own. */
enum { FILES = 16 };

/* Learners need descriptors too, and so do files. */
void gate_begin(struct gate *g)
{
	struct rlimit files;
	size_t most = INT_MAX;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < most)
		most = files.rlim_cur;
	*g = (struct gate){.inside_most = most / 2,
		.most = most / 2 < FILES ? most / 2 : most - FILES,
		.say_at = INT64_MAX};
	if (g->inside_most > DL_DOOR_INSIDE)
		g->inside_most = DL_DOOR_INSIDE;
	g->key_most = g->inside_most / 8;
}

static void tell_unsaid(struct gate *g)
{
	if (g->unsaid)
		cmd_note("and %llu more", (unsigned long long)g->unsaid);
	g->unsaid = 0;
	g->say_at = INT64_MAX;
}

void gate_note(struct server *s, const char *fmt, ...)
{
	struct gate *g = &s->gate;
	int64_t now = dl_now();
	char text[640];
	va_list ap;

	if (!dl_bucket_take(&g->lines, lines, now)) {
		if (!g->unsaid++)
			g->say_at = now + count_pause;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	tell_unsaid(g);
	cmd_note("%s", text);
}

void gate_work(struct gate *g, int64_t now)
{
	if (now >= g->say_at)
		tell_unsaid(g);
}

int64_t gate_wake(const struct gate *g)
{
	return g->say_at;
}

/* Who was refused may take its time to read that, while there is room. */
static int is_stranger(const struct peer *peer)
{
	return !peer->over && (peer->state == PEER_STRANGER || peer->unwelcome);
}

/* The newest is let in: whoever has a key needs a moment only, so of too many
 * it is the oldest who do not mean to say hello. 0: all who are there have. */
static int make_room(struct server *s, int fd)
{
	struct peer *oldest = NULL;
	size_t strangers = 0;
	struct dl_err why;

	for (struct peer *peer = s->peer; peer; peer = peer->next)
		if (is_stranger(peer)) {
			oldest = peer;
			strangers++;
		}
	if (strangers < s->gate.inside_most && (size_t)fd < s->gate.most)
		return 1;
	if (!oldest)
		return 0;
	dl_fail(&why, DL_UNAVAILABLE, "said nothing while others wait");
	peer_drop(oldest, &why);
	return 1;
}

int gate_enter(struct server *s, int fd, int64_t now)
{
	struct sockaddr_storage name = {0};
	socklen_t n = sizeof name;
	char address[DL_PEER_MAX];

	if (getpeername(fd, (struct sockaddr *)&name, &n))
		return 0; /* gone again */
	if (!dl_door_knock(&s->gate.door, (struct sockaddr *)&name, now)) {
		gate_note(s, "%s is turned away: too many from there",
			dl_address_peer(address, fd));
		return 0;
	}
	if (!make_room(s, fd)) {
		gate_note(s, "%s is turned away: no descriptors (ulimit -n)",
			dl_address_peer(address, fd));
		return 0;
	}
	return 1;
}

int gate_spares(const struct gate *g, int fd)
{
	return (size_t)fd < g->most / 2;
}

int gate_key(const struct server *s, const struct dl_authorized *may,
	struct dl_err *e)
{
	size_t n = 0;

	for (const struct peer *peer = s->peer; peer; peer = peer->next)
		n += peer->may == may && !peer->over &&
		     peer->state != PEER_LEARNER;
	if (n < s->gate.key_most)
		return 0;
	return dl_fail(
		e, DL_TEMPFAIL, "%s has too many connections", may->name);
}
