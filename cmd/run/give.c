#include "cmd/run/give.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"

static struct dl_sync_event event_of(const struct stashed *s, uint64_t id)
{
	const struct dl_message *m = &s->push;

	return (struct dl_sync_event){.kind = DL_EV_PUSH,
		.learner = s->learner,
		.instance = s->instance,
		.fragment = m->fragment,
		.seq = m->seq,
		.step = m->step,
		.base = m->base,
		.steps = m->steps,
		.tokens = m->tokens,
		.loss = NAN,
		.push = id};
}

static int is_here(const struct pass *p, const struct stashed *s)
{
	const struct book_learner *l = book_find(&p->book, s->learner);

	return l && l->here && l->instance == s->instance;
}

int give_in_order(
	const struct pass *p, const struct stashed *s, struct dl_err *e)
{
	const struct dl_message *m = &s->push;

	if (m->seq > 1 + dl_sync_taken(
				 p->core, s->learner, s->instance, m->fragment))
		return dl_fail(e, DL_NO, "the push before it is missing");
	return 0;
}

int give_check(const struct pass *p, const struct stashed *s, struct dl_err *e)
{
	struct dl_sync_event ev = event_of(s, 0);
	enum dl_refusal r;
	uint64_t taken;

	if (!is_here(p, s))
		return dl_fail(e, DL_NO, "its learner has not said hello");
	taken = dl_sync_taken(
		p->core, s->learner, s->instance, s->push.fragment);
	if (s->push.seq <= taken)
		return 0;
	if (give_in_order(p, s, e))
		return DL_NO;
	r = dl_sync_judge(p->core, &ev);
	if (r == DL_REFUSED_COUNT || r == DL_REFUSED_CLOCK)
		return dl_fail(e, DL_NO, "its learner has not told its steps");
	return 0;
}

void give_explain(struct pass *p, const struct stashed *s)
{
	struct dl_sync_learner_info info;
	uint64_t clock = s->push.step, steps = s->push.steps;
	uint64_t tokens = s->push.tokens;

	if (!give_check(p, s, NULL))
		return;
	for (size_t i = 0; is_here(p, s) && dl_sync_learner(p->core, i, &info);
		i++)
		if (!strcmp(info.name, s->learner)) {
			clock = info.clock > clock ? info.clock : clock;
			steps += info.steps;
			tokens += info.tokens;
		}
	roll_join_gone(p, s->learner, s->instance, clock, steps, tokens);
}

/* Its data, in memory. */
static int load(struct pass *p, const struct stashed *s, struct push **out,
	struct dl_err *e)
{
	const struct dl_records_entry *r = &s->file.record[0];
	const struct dl_message *m = &s->push;
	struct pushes *pushes = &p->globals.pushes;
	int code;

	if (m->fragment >= p->layout->fragments)
		return dl_fail(e, DL_DATA, "fragment %u of %u", m->fragment,
			p->layout->fragments);
	code = pushes_begin(pushes, m->fragment, &r->header, out, e);
	if (code)
		return code;
	code = dl_records_read(&s->file, r->at, (*out)->data, (*out)->size, e);
	if (code)
		pushes_drop(pushes, *out);
	else
		pushes_arrived(pushes, *out);
	return code;
}

int give(struct pass *p, const struct stashed *s, uint64_t id, struct dl_err *e)
{
	struct dl_sync_event ev = event_of(s, id);
	struct push *push;
	int code = load(p, s, &push, e);

	if (code)
		return code;
	ev.norm = push->norm;
	ev.elements = push->coded.elements;
	ev.bytes = push->bytes;
	pushes_drop(&p->globals.pushes, push);
	p->book.last = (struct book_answer){0};
	pass_event(p, &ev);
	return p->book.last.seq
		       ? 0
		       : dl_fail(e, DL_DATA, "its learner is not here");
}

int give_load(struct pass *p, uint64_t id, struct dl_err *e)
{
	struct stashed s;
	struct push *push;
	int code = stash_look(&p->stash, id, p->run->name, &s, e);

	if (!code)
		code = load(p, &s, &push, e);
	if (!code)
		push->id = id;
	stashed_close(&s);
	return code ? dl_at(e, "%s/%llu", p->stash.folder,
			      (unsigned long long)id)
		    : 0;
}

/* The steps and tokens of all that lies there of one who is gone: so much it
 * must have done. */
static void join_gone(struct pass *p, const struct stashed *who)
{
	uint64_t clock = 0, steps = 0, tokens = 0;
	struct stashed s;

	for (size_t i = 0; i < p->stash.ids; i++) {
		if (!stash_look(&p->stash, p->stash.id[i], p->run->name, &s,
			    NULL) &&
			s.instance == who->instance &&
			!strcmp(s.learner, who->learner)) {
			steps += s.push.steps;
			tokens += s.push.tokens;
			if (clock < s.push.step)
				clock = s.push.step;
		}
		stashed_close(&s);
	}
	roll_join_gone(p, who->learner, who->instance, clock, steps, tokens);
}

/* A pass that was killed may have copied a push, and not noted that its learner
 * is here, nor the steps that it is made of. */
static void hear(
	struct pass *p, const struct roll *roll, const struct stashed *s)
{
	const struct roll_learner *l = roll_find(roll, s->learner);
	struct dl_sync_event ev = event_of(s, 0);
	enum dl_refusal r = dl_sync_judge(p->core, &ev);

	if (l && l->says.instance == s->instance)
		roll_tell_one(p, l);
	else if (!is_here(p, s) || r == DL_REFUSED_COUNT ||
		 r == DL_REFUSED_CLOCK)
		join_gone(p, s);
}

/* A clock that nobody remembers reporting is not held against it, and what its
 * learner has not told yet it will: 0 when it has to wait for that. */
static int give_known(struct pass *p, struct stashed *s, uint64_t id)
{
	const struct book_learner *l = book_find(&p->book, s->learner);
	struct dl_sync_event ev = event_of(s, id);
	enum dl_refusal r = dl_sync_judge(p->core, &ev);
	struct dl_err e;

	if (r == DL_REFUSED_COUNT)
		return 0;
	if (r == DL_REFUSED_CLOCK)
		s->push.step = l->clock;
	if (give(p, s, id, &e))
		cmd_note("%s/%llu: %s", p->stash.folder, (unsigned long long)id,
			e.text);
	else
		cmd_debug("%s/%llu: given again: %s", p->stash.folder,
			(unsigned long long)id,
			dl_taken_name(p->book.last.word));
	return 1;
}

int give_again(struct pass *p, const struct roll *r, struct dl_err *e)
{
	for (size_t i = 0; i < p->stash.ids; i++) {
		uint64_t id = p->stash.id[i];
		struct stashed s;
		int code;

		if (book_holds(&p->book, id))
			continue;
		code = stash_look(&p->stash, id, p->run->name, &s, e);
		if (!code) {
			hear(p, r, &s);
			if (!give_known(p, &s, id))
				p->stash.id[i] = 0;
		} else {
			cmd_note("%s/%llu: %s", p->stash.folder,
				(unsigned long long)id, e->text);
		}
		stashed_close(&s);
		if (code && code != DL_DATA && code != DL_NOINPUT)
			return code;
	}
	return 0;
}
