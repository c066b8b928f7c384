#include "cmd/learn/drain.h"

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/learn/learner.h"
#include "cmd/learn/orders.h"

/* Schedulers signal all processes, and those between pass it on: what comes
 * twice so soon was meant once. */
static const int64_t same_asking = DL_SECOND / 2;

int drain_asked(const struct learner *l)
{
	return l->drain.at != INT64_MAX;
}

/* Fragments whose steps the syncer has not got. */
struct missing {
	struct dl_buf list; /* "0-2, 7" */
	uint32_t count;
	uint64_t least, most; /* steps of one of them */
};

static void add_range(struct missing *m, uint32_t first, uint32_t end)
{
	dl_buf_printf(&m->list, m->list.len ? ", %u" : "%u", first);
	if (end - first > 1)
		dl_buf_printf(&m->list, "-%u", end - 1);
}

static void find_missing(
	struct missing *m, const struct dl_learn *core, uint32_t fragments)
{
	uint32_t first = 0;

	*m = (struct missing){.least = UINT64_MAX};
	for (uint32_t p = 0; p < fragments; p++) {
		uint64_t steps = dl_learn_undelivered(core, p);

		if (!steps) {
			if (first < p)
				add_range(m, first, p);
			first = p + 1;
			continue;
		}
		m->count++;
		m->least = steps < m->least ? steps : m->least;
		m->most = steps > m->most ? steps : m->most;
	}
	if (first < fragments)
		add_range(m, first, fragments);
}

void drain_report(struct learner *l)
{
	struct missing m;
	struct dl_learn_info info;

	if (!l->core || !drain_asked(l) || l->code)
		return;
	find_missing(&m, l->core, l->layout.fragments);
	dl_learn_info(l->core, &info);
	if (m.count)
		cmd_warn("fragment%s %s: %s%llu step%s not delivered",
			m.count > 1 ? "s" : "", dl_buf_cstr(&m.list),
			m.least < m.most ? "up to " : "",
			(unsigned long long)m.most,
			m.most > 1 ? "s were" : " was");
	else if (info.lost > l->drain.lost)
		cmd_warn("what the trainer had not handed over is lost");
	if (m.count || info.lost > l->drain.lost || l->drain.dropped)
		l->code = DL_TEMPFAIL;
	dl_buf_free(&m.list);
}

static void begin(struct learner *l, int64_t now)
{
	struct dl_learn_event ev = {.kind = DL_LE_DRAIN, .now = now};
	char time[DL_HUMAN];

	if (l->uplink.welcomed)
		cmd_note("delivers its last work and ends");
	else
		cmd_note("the syncer is away: the last work waits %s for it",
			dl_human_duration(time, l->options->drain_ns));
	uplink_hurry(l, now);
	learner_event(l, &ev);
	orders_unload(l, now);
}

static int64_t asked_at(const struct learner *l)
{
	return l->drain.at - l->options->drain_ns;
}

void drain_ask(struct learner *l, int64_t now)
{
	struct dl_learn_info info;

	if (drain_asked(l) && now - asked_at(l) < same_asking)
		return;
	if (!l->core || drain_asked(l)) {
		l->over = 1;
		return;
	}
	dl_learn_info(l->core, &info);
	l->drain = (struct drain){now + l->options->drain_ns, info.lost, 0};
	/* One that is ending as it is has its time, once. */
	if (!l->finishing)
		begin(l, now);
}

void drain_taken(struct learner *l, const struct dl_message *m)
{
	/* Late are only those of before: others go into the next round. */
	l->drain.dropped |= drain_asked(l) && m->taken == DL_TAKEN_REFUSED;
}

void drain_work(struct learner *l, int64_t now)
{
	if (l->finishing || now < l->drain.at)
		return;
	drain_report(l);
	learner_finish(l);
}

int64_t drain_wake(const struct learner *l)
{
	return l->finishing ? INT64_MAX : l->drain.at;
}
