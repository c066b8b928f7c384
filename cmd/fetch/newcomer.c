#include "cmd/fetch/newcomer.h"

#include <string.h>

#include "base/num.h"
#include "cmd/client.h"
#include "cmd/cmd.h"

/* So often all that can be asked are asked again, while nothing is gained. */
enum { ROUNDS = 6 };

/* A donor makes its state between two steps, which may be long ones. */
static const int64_t state_time = 300 * DL_SECOND, part_time = 120 * DL_SECOND;
static const int64_t pause_min = DL_SECOND / 5, pause_max = 15 * DL_SECOND;

static int64_t pause_of(unsigned n)
{
	int64_t pause = n < 8 ? pause_min << n : pause_max;

	return pause < pause_max ? pause : pause_max;
}

static void conclude(struct newcomer *n, enum newcomer_result result)
{
	visit_end(&n->visit);
	n->result = result;
	cmd_status_end();
}

static void give_up(struct newcomer *n, const struct dl_err *why)
{
	n->why = *why;
	conclude(n, NEWCOMER_NOTHING);
}

static void rest(struct newcomer *n, int64_t until)
{
	n->doing = NEWCOMER_PAUSE;
	n->until = until;
}

static void ask(struct newcomer *n)
{
	struct dl_message hello = {.kind = DL_MSG_HELLO,
		.role = DL_ROLE_JOINER,
		.run = n->run,
		.name = n->config.name,
		.layout = n->layout.hash,
		.key = n->key};

	n->doing = NEWCOMER_ASK;
	n->heard = 0;
	n->visit.insecure = n->config.insecure;
	visit_begin(&n->visit, n->errands, n->config.syncer, n->silent, &hello);
}

static void call_on(struct newcomer *n, struct donor *donor, int64_t now)
{
	struct dl_address a = donor->offer.address;
	struct dl_message hello = {.kind = DL_MSG_HELLO,
		.role = DL_ROLE_JOINER,
		.run = n->run,
		.name = n->config.name,
		.layout = n->layout.hash,
		.clock = n->clock};

	a.own = n->config.key;
	a.tcp = n->config.syncer->tcp;
	n->donor = donor;
	n->doing = NEWCOMER_TAKE;
	n->until = now + state_time;
	n->before = n->intake.fetched;
	strcpy(n->from, donor->offer.name);
	/* It may be long until there is more to say. */
	if (!donor->tries)
		cmd_note("asks %s for its state", n->from);
	visit_begin(&n->visit, n->errands, &a, donor->tries++, &hello);
}

static void choose(struct newcomer *n, int64_t now)
{
	struct donor *donor = n->clock ? donors_next(&n->donors) : NULL;

	if (donor)
		call_on(n, donor, now);
	else
		conclude(n, NEWCOMER_NOTHING);
}

static void syncer_lost(
	struct newcomer *n, const struct dl_err *why, int64_t now)
{
	int others = donors_open(&n->donors) > 0;
	char address[DL_ADDRESS_MAX];
	struct dl_err e = *why;

	/* Where it could not be reached has been said. */
	if (n->visit.opened)
		dl_at(&e, "%s", dl_address_show(address, &n->visit.address));
	if (client_is_final(e.code) || (!others && !n->config.wait)) {
		give_up(n, &e);
		return;
	}
	if (!n->silent) {
		cmd_warn("%s: trying again", e.text);
		n->away_at = now;
	}
	if (others)
		choose(n, now);
	else
		rest(n, now + pause_of(n->silent));
	n->silent++;
}

static int is_own(int code)
{
	return code == DL_IOERR || code == DL_CANTCREAT;
}

static void donor_lost(
	struct newcomer *n, const struct dl_err *why, int64_t now)
{
	size_t others;

	intake_lost(&n->intake);
	cmd_warn("%s: %s", n->from, why->text);
	n->donor->barred =
		why->code != DL_UNAVAILABLE && why->code != DL_TEMPFAIL;
	others = donors_open(&n->donors);
	if (n->intake.got > n->got)
		n->failures = 0;
	n->got = n->intake.got;
	n->failures += !n->donor->barred;
	/* What is our own fault is why there is none, unless another has one
	 * that fits. */
	n->why = is_own(why->code) ? *why : (struct dl_err){0};
	if (why->code == DL_IOERR || n->failures > others + ROUNDS)
		conclude(n, NEWCOMER_NOTHING);
	else if (n->failures <= others)
		ask(n);
	else
		rest(n, now + pause_of((unsigned)(n->failures - others)));
}

static int on_welcome(
	struct newcomer *n, const struct dl_message *m, struct dl_err *e)
{
	int first = !n->layout.fragments;

	if (!first && (strcmp(m->run, n->run) != 0))
		return dl_fail(e, DL_PROTOCOL, "now serves another run");
	if (!dl_name_ok(m->run, strlen(m->run)))
		return dl_fail(e, DL_PROTOCOL, "welcome to no run");
	if (first && dl_layout_parse(&n->layout, m->text, m->text_n, e))
		return dl_at(e, "layout");
	strcpy(n->run, m->run);
	n->clock = m->clock;
	n->silent = 0;
	n->away_at = INT64_MAX;
	return 0;
}

static int from_syncer(
	struct newcomer *n, const struct dl_message *m, struct dl_err *e)
{
	switch (m->kind) {
	case DL_MSG_WELCOME:
		return on_welcome(n, m, e);
	case DL_MSG_PEERS:
		n->heard = n->layout.fragments > 0;
		donors_hear(&n->donors, m->text);
		return 0;
	case DL_MSG_BYE:
		return dl_fail(e, DL_UNAVAILABLE, "the syncer leaves");
	default:
		return dl_fail(e, DL_PROTOCOL, "%s is not for newcomers",
			dl_message_kind_name(m->kind));
	}
}

static int on_state(struct newcomer *n, struct dl_conn *c,
	const struct dl_message *m, struct dl_err *e)
{
	char size[DL_HUMAN];

	if (m->clock < n->clock)
		return dl_fail(e, DL_PROTOCOL,
			"a state of clock %llu, not %llu",
			(unsigned long long)m->clock,
			(unsigned long long)n->clock);
	n->until = dl_now() + part_time;
	cmd_note("takes the state of %s: clock %llu, %s", n->from,
		(unsigned long long)m->clock, dl_human_size(size, m->bytes));
	return intake_state(&n->intake, c, m, e);
}

static int on_message(void *ctx, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e)
{
	struct newcomer *n = ctx;

	if (m->kind == DL_MSG_ERROR)
		return client_refused(m, e);
	if (n->doing == NEWCOMER_ASK)
		return from_syncer(n, m, e);
	if (m->kind == DL_MSG_STATE)
		return on_state(n, c, m, e);
	return dl_fail(e, m->kind == DL_MSG_BYE ? DL_UNAVAILABLE : DL_PROTOCOL,
		"says %s", dl_message_kind_name(m->kind));
}

static int on_begin(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	struct newcomer *n = ctx;

	(void)c;
	if (m->kind != DL_MSG_PART)
		return dl_fail(e, DL_PROTOCOL, "%s of no use",
			dl_message_kind_name(m->kind));
	return intake_begin(&n->intake, m, h, dest, e);
}

static void show(struct newcomer *n, uint64_t before)
{
	const struct intake *in = &n->intake;
	char got[DL_HUMAN], bytes[DL_HUMAN];

	if (in->got > before)
		cmd_debug("%llu of %llu bytes are whole",
			(unsigned long long)in->got,
			(unsigned long long)in->bytes);
	if (in->bytes && cmd_status_due(&n->status))
		cmd_status_show(&n->status, "state of %s: %s of %s", n->from,
			dl_human_size(got, in->got),
			dl_human_size(bytes, in->bytes));
}

static int on_whole(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void *dest, struct dl_err *e)
{
	struct newcomer *n = ctx;
	uint64_t before = n->intake.got;

	(void)dest;
	n->until = dl_now() + part_time;
	if (intake_part(&n->intake, c, m, h, e))
		return e->code;
	show(n, before);
	return 0;
}

int newcomer_begin(
	struct newcomer *n, const struct newcomer_config *c, struct dl_err *e)
{
	static const struct dl_conn_handlers handlers = {
		on_message, on_begin, on_whole};

	*n = (struct newcomer){.config = *c,
		.away_at = INT64_MAX,
		.status = CMD_STATUS_INIT};
	strcpy(n->run, c->run);
	n->intake.layout = &n->layout;
	n->intake.create = c->create;
	n->intake.ctx = c->ctx;
	n->visit.loop = c->loop;
	n->visit.handlers = &handlers;
	n->visit.ctx = n;
	if (!c->syncer->own)
		dl_key_print(n->key, c->key->public);
	n->errands = dl_errands_new(c->loop, e);
	return n->errands ? 0 : e->code;
}

void newcomer_release(struct newcomer *n)
{
	dl_errands_free(n->errands);
	visit_end(&n->visit);
	intake_release(&n->intake);
	donors_release(&n->donors);
	dl_layout_release(&n->layout);
	*n = (struct newcomer){.result = n->result};
}

static void finish(struct newcomer *n)
{
	struct dl_message bye = {.kind = DL_MSG_BYE, .bye = DL_BYE_LEAVING};
	struct dl_err e;

	if (intake_finish(&n->intake, &e)) {
		give_up(n, &e);
		return;
	}
	cmd_debug("fetched %llu bytes, %llu of them from %s",
		(unsigned long long)n->intake.fetched,
		(unsigned long long)(n->intake.fetched - n->before), n->from);
	if (n->visit.state == VISIT_OPEN) {
		dl_conn_send(&n->visit.conn, &bye);
		dl_conn_flush(&n->visit.conn, dl_now());
	}
	conclude(n, NEWCOMER_STATE);
}

static void on_over(struct newcomer *n, const struct dl_err *why, int64_t now)
{
	if (n->doing == NEWCOMER_TAKE)
		donor_lost(n, why, now);
	else if (n->heard)
		choose(n, now);
	else
		syncer_lost(n, why, now);
}

void newcomer_work(struct newcomer *n, int64_t now)
{
	struct dl_err e;

	if (n->doing == NEWCOMER_PAUSE && now >= n->until)
		ask(n);
	if (n->doing == NEWCOMER_PAUSE)
		return;
	if (n->doing == NEWCOMER_TAKE && intake_is_whole(&n->intake)) {
		finish(n);
		return;
	}
	if (visit_work(&n->visit, now, &e)) {
		on_over(n, &e, now);
	} else if (n->doing == NEWCOMER_TAKE && now >= n->until &&
		   n->visit.state == VISIT_OPEN) {
		visit_end(&n->visit);
		dl_fail(&e, DL_UNAVAILABLE, "gives nothing more");
		donor_lost(n, &e, now);
	}
}

int64_t newcomer_wake(const struct newcomer *n)
{
	int64_t wake = visit_wake(&n->visit);

	if (n->result != NEWCOMER_BUSY)
		return 0;
	if (n->doing != NEWCOMER_ASK && n->until < wake)
		wake = n->until;
	return intake_is_whole(&n->intake) ? 0 : wake;
}
