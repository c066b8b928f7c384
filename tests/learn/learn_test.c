/* The learner's core, one rule of DESIGN's "Rounds" a test. */
#include <string.h>

#include "base/num.h"
#include "learn/learn.h"
#include "tests/tap.h"

enum { P_MOST = 4, ACTS = 256 };

/* A core, and what it did since the last event. */
struct rig {
	struct dl_learn_config config;
	struct dl_learn *l;
	struct dl_learn_action act[ACTS];
	size_t acts;
};

/* One fragment, due every fourth step; `step` only when needed. */
static void rig_init(struct rig *r)
{
	*r = (struct rig){.config = {
				  .schedule = {.fragments = 1, .h = 4},
				  .tau = 2,
				  .syncers = 1,
				  .step_every = INT64_MAX / 4,
			  }};
}

static void tell(struct rig *r, struct dl_learn_event ev)
{
	dl_learn_event(r->l, &ev);
	for (r->acts = 0; dl_learn_next(r->l, &r->act[r->acts]); r->acts++)
		;
}

/* The place, from 1, of the first action of that kind; 0 for none. */
static size_t at(const struct rig *r, enum dl_learn_action_kind kind)
{
	for (size_t i = 0; i < r->acts; i++)
		if (r->act[i].kind == kind)
			return i + 1;
	return 0;
}

/* ... and the action, which must be there. */
static const struct dl_learn_action *did(
	const struct rig *r, enum dl_learn_action_kind kind)
{
	static const struct dl_learn_action nothing;
	size_t i = at(r, kind);

	return i ? &r->act[i - 1] : &nothing;
}

static void welcome(struct rig *r, uint32_t syncer, uint64_t clock,
	struct dl_version version, struct dl_version origin, uint64_t taken)
{
	struct dl_version versions[P_MOST], origins[P_MOST];
	uint64_t seqs[P_MOST];

	for (int p = 0; p < P_MOST; p++) {
		versions[p] = version;
		origins[p] = origin;
		seqs[p] = taken;
	}
	tell(r, (struct dl_learn_event){.kind = DL_LE_WELCOME,
			.syncer = syncer,
			.clock = clock,
			.versions = versions,
			.origins = origins,
			.seqs = seqs});
}

static void global(struct rig *r, uint32_t p, uint64_t epoch, uint64_t number,
	uint64_t step, int final)
{
	tell(r, (struct dl_learn_event){.kind = DL_LE_GLOBAL,
			.fragment = p,
			.version = {epoch, number},
			.step = step,
			.final = final});
}

static void open_round(struct rig *r, uint32_t p, uint64_t step)
{
	tell(r, (struct dl_learn_event){
			.kind = DL_LE_OPEN, .fragment = p, .step = step});
}

static void taken(struct rig *r, uint64_t seq, enum dl_taken what)
{
	tell(r, (struct dl_learn_event){
			.kind = DL_LE_TAKEN, .seq = seq, .taken = what});
}

static void plain(struct rig *r, enum dl_learn_event_kind kind)
{
	tell(r, (struct dl_learn_event){.kind = kind});
}

/* n steps of ten tokens; leaves what the last one led to. */
static void steps(struct rig *r, int n)
{
	for (int i = 0; i < n; i++)
		tell(r, (struct dl_learn_event){
				.kind = DL_LE_STEP, .tokens = 10, .loss = 1});
}

/* Connected, loaded, going, at clock 0. */
static void rig_start(struct rig *r)
{
	r->l = dl_learn_new(&r->config);
	welcome(r, 0, 0, (struct dl_version){1, 0}, (struct dl_version){1, 0},
		0);
	for (uint32_t p = 0; p < r->config.schedule.fragments; p++)
		global(r, p, 1, 0, 0, 0);
}

static void rig_release(struct rig *r)
{
	dl_learn_free(r->l);
}

static struct dl_learn_info info(const struct rig *r)
{
	struct dl_learn_info i;

	dl_learn_info(r->l, &i);
	return i;
}

static void test_start(void)
{
	struct rig r;

	rig_init(&r);
	r.config.schedule.fragments = 2;
	r.l = dl_learn_new(&r.config);
	welcome(&r, 0, 7, (struct dl_version){1, 0}, (struct dl_version){1, 0},
		0);
	global(&r, 0, 1, 0, 0, 0);
	ok(at(&r, DL_LA_APPLIED) && !at(&r, DL_LA_LOAD),
		"not loaded before every fragment is there");
	global(&r, 1, 1, 0, 0, 0);
	ok(at(&r, DL_LA_LOAD) && at(&r, DL_LA_GO) > at(&r, DL_LA_LOAD),
		"then loaded, and on it goes");
	ok(did(&r, DL_LA_LOAD)->clock == 7, "with the clock of the welcome");
	rig_release(&r);
}

static void test_due(void)
{
	const struct dl_learn_action *copy;
	struct rig r;

	rig_init(&r);
	rig_start(&r);
	steps(&r, 3);
	ok(r.acts == 1 && at(&r, DL_LA_GO),
		"between due steps it just goes on");
	steps(&r, 1);
	copy = did(&r, DL_LA_COPY);
	ok(copy->steps == 4 && copy->tokens == 40 && copy->step == 4 &&
			copy->seq == 1 && copy->base.epoch == 1,
		"at its due step it pushes what it has done");
	ok(at(&r, DL_LA_STEP) && at(&r, DL_LA_STEP) < at(&r, DL_LA_COPY) &&
			at(&r, DL_LA_COPY) < at(&r, DL_LA_GO),
		"after saying how far it is, before it goes on");
	steps(&r, 4);
	ok(!at(&r, DL_LA_COPY),
		"while a push is not settled, steps ride along");
	taken(&r, 1, DL_TAKEN_ROUND);
	ok(!at(&r, DL_LA_RELEASE), "one in a round is kept");
	taken(&r, 1, DL_TAKEN_SETTLED);
	ok(did(&r, DL_LA_RELEASE)->seq == 1, "until it is settled");
	steps(&r, 4);
	ok(did(&r, DL_LA_COPY)->steps == 8 && did(&r, DL_LA_COPY)->seq == 2,
		"the next push carries all since");
	rig_release(&r);
}

static void test_open_and_jump(void)
{
	struct rig r;

	rig_init(&r);
	rig_start(&r);
	steps(&r, 1);
	open_round(&r, 0, 40);
	ok(!r.acts, "an open is answered at the next boundary");
	steps(&r, 1);
	ok(at(&r, DL_LA_CLOCK) && did(&r, DL_LA_CLOCK)->clock == 40,
		"a slow learner jumps to the round's step");
	ok(did(&r, DL_LA_COPY)->steps == 2 && did(&r, DL_LA_COPY)->step == 40,
		"and contributes the steps it has");
	ok(at(&r, DL_LA_CLOCK) < at(&r, DL_LA_COPY), "in that order");
	steps(&r, 1);
	ok(!at(&r, DL_LA_COPY), "once");
	ok(dl_learn_clock(r.l) == 41, "and counts on from there");
	open_round(&r, 0, 36);
	steps(&r, 1);
	ok(!at(&r, DL_LA_CLOCK) && !at(&r, DL_LA_COPY), "an old open is void");
	rig_release(&r);
}

/* A link slower than rounds come: nothing queues up behind what is on it. */
static void test_on_its_way(void)
{
	struct rig r;

	rig_init(&r);
	rig_start(&r);
	steps(&r, 4);
	ok(did(&r, DL_LA_COPY)->seq == 1, "a push is on its way");
	open_round(&r, 0, 40);
	steps(&r, 1);
	ok(at(&r, DL_LA_CLOCK) && !at(&r, DL_LA_COPY),
		"a round that opens meanwhile gets none behind it");
	global(&r, 0, 1, 1, 44, 0);
	steps(&r, 1);
	ok(at(&r, DL_LA_APPLY) && !at(&r, DL_LA_COPY),
		"nor does one that was missed");
	steps(&r, 2);
	open_round(&r, 0, 50);
	taken(&r, 1, DL_TAKEN_WAITING);
	steps(&r, 1);
	ok(did(&r, DL_LA_COPY)->seq == 2 && did(&r, DL_LA_COPY)->step == 50 &&
			did(&r, DL_LA_COPY)->steps == 3,
		"once it is there the next goes, with all steps since");
	rig_release(&r);
}

static void test_apply(void)
{
	struct rig r;

	rig_init(&r);
	rig_start(&r);
	steps(&r, 2);
	global(&r, 0, 1, 1, 4, 0);
	ok(!r.acts, "a global waits for a boundary");
	global(&r, 0, 1, 3, 8, 0);
	global(&r, 0, 1, 2, 6, 0);
	steps(&r, 1);
	ok(did(&r, DL_LA_COPY)->steps == 3 &&
			at(&r, DL_LA_COPY) < at(&r, DL_LA_APPLY),
		"what a round it missed would overwrite is copied first");
	ok(did(&r, DL_LA_APPLY)->version.number == 3, "the newest is applied");
	ok(at(&r, DL_LA_APPLIED) && dl_learn_version(r.l, 0).number == 3,
		"and told");
	global(&r, 0, 1, 3, 8, 0);
	steps(&r, 1);
	ok(!at(&r, DL_LA_APPLY), "the same again is not");
	rig_release(&r);
}

/* Pushes at step 4, does two more, then gets the round's global. */
static struct dl_learn_info apply_with(
	enum dl_apply apply, double alpha, uint64_t *next)
{
	struct dl_learn_info i;
	struct rig r;

	rig_init(&r);
	r.config.apply = apply;
	r.config.alpha = alpha;
	rig_start(&r);
	steps(&r, 6);
	global(&r, 0, 1, 1, 4, 0);
	steps(&r, 1);
	i = info(&r);
	taken(&r, 1, DL_TAKEN_SETTLED);
	steps(&r, 1);
	*next = did(&r, DL_LA_COPY)->steps;
	rig_release(&r);
	return i;
}

static void test_counters(void)
{
	struct dl_learn_info i;
	uint64_t next;

	i = apply_with(DL_APPLY_OVERWRITE, 0, &next);
	ok(i.pushed == 4 && i.overwritten == 3 && !i.unsent && next == 1,
		"overwrite: steps made in flight are gone");
	i = apply_with(DL_APPLY_CARRY, 0, &next);
	ok(i.pushed == 4 && !i.overwritten && i.unsent == 3 && next == 4,
		"carry: they stay");
	i = apply_with(DL_APPLY_BLEND, 0.5, &next);
	ok(i.pushed == 4 && i.overwritten == 1 && i.unsent == 2 && next == 3,
		"blend: a share of them stays");
}

static void test_wait(void)
{
	struct rig r;

	rig_init(&r);
	r.config.wait = 1;
	rig_start(&r);
	open_round(&r, 0, 4);
	steps(&r, 3);
	ok(!at(&r, DL_LA_COPY) && !at(&r, DL_LA_CLOCK), "--wait: no jumps");
	steps(&r, 1);
	ok(at(&r, DL_LA_COPY) && at(&r, DL_LA_GO), "pushes at its due step");
	steps(&r, 1);
	ok(at(&r, DL_LA_GO), "goes on while the push is out");
	steps(&r, 1);
	ok(!at(&r, DL_LA_GO) && info(&r).holding, "up to tau steps");
	taken(&r, 1, DL_TAKEN_ROUND);
	ok(!at(&r, DL_LA_GO), "a round has to be merged first");
	taken(&r, 1, DL_TAKEN_SETTLED);
	ok(at(&r, DL_LA_GO) != 0, "then it goes on");
	rig_release(&r);

	rig_init(&r);
	r.config.wait = 1;
	rig_start(&r);
	steps(&r, 6);
	taken(&r, 1, DL_TAKEN_WAITING);
	ok(at(&r, DL_LA_GO) != 0,
		"a push for which no round is open holds nobody");
	rig_release(&r);

	rig_init(&r);
	r.config.wait = 1;
	r.l = dl_learn_new(&r.config);
	welcome(&r, 0, 9, (struct dl_version){1, 1}, (struct dl_version){1, 1},
		0);
	global(&r, 0, 1, 1, 4, 0);
	open_round(&r, 0, 8);
	steps(&r, 1);
	ok(did(&r, DL_LA_COPY)->step == 10,
		"who comes after a due step that others wait at owes its push");
	taken(&r, 1, DL_TAKEN_ROUND);
	steps(&r, 1);
	ok(!at(&r, DL_LA_COPY), "... and one only");
	rig_release(&r);
}

static void settle(struct rig *r, uint32_t p, uint64_t seq)
{
	tell(r, (struct dl_learn_event){.kind = DL_LE_TAKEN,
			.fragment = p,
			.seq = seq,
			.taken = DL_TAKEN_SETTLED});
}

/* Down times that overlap leave clocks far apart. */
static void test_wait_apart(void)
{
	struct rig r;

	rig_init(&r);
	r.config.wait = 1;
	rig_start(&r);
	steps(&r, 6);
	taken(&r, 1, DL_TAKEN_ROUND);
	ok(!at(&r, DL_LA_GO), "--wait: a push that its round waits with holds");
	open_round(&r, 0, 8);
	ok(at(&r, DL_LA_GO) != 0, "not one in a round that wants a newer");
	steps(&r, 2);
	ok(did(&r, DL_LA_COPY)->step == 8, "which is made at its step");
	rig_release(&r);

	rig_init(&r);
	r.config.wait = 1;
	r.config.schedule.fragments = 2;
	rig_start(&r);
	steps(&r, 2);
	settle(&r, 1, 1);
	steps(&r, 4);
	ok(!at(&r, DL_LA_GO), "one who is held by a fragment");
	settle(&r, 1, 2);
	global(&r, 1, 1, 1, 2, 0);
	ok(!at(&r, DL_LA_GO), "and has another applied");
	taken(&r, 1, DL_TAKEN_ROUND);
	welcome(&r, 0, 8, (struct dl_version){1, 1}, (struct dl_version){1, 1},
		2);
	open_round(&r, 1, 8);
	ok(at(&r, DL_LA_GO) != 0, "makes a step for a round that waits for it");
	steps(&r, 1);
	ok(did(&r, DL_LA_COPY)->fragment == 1, "... and pushes that");
	rig_release(&r);
}

/* A round opens that a trainer can serve where it is held. */
static void test_wait_opened(void)
{
	struct rig r;

	rig_init(&r);
	r.config.wait = 1;
	r.config.tau = 1;
	r.config.schedule.fragments = 2;
	r.l = dl_learn_new(&r.config);
	welcome(&r, 0, 3, (struct dl_version){1, 0}, (struct dl_version){1, 0},
		0);
	global(&r, 0, 1, 0, 0, 0);
	global(&r, 1, 1, 0, 0, 0);
	steps(&r, 2);
	ok(!at(&r, DL_LA_GO), "--wait: one who is held");
	open_round(&r, 1, 2);
	ok(did(&r, DL_LA_COPY)->fragment == 1 && did(&r, DL_LA_COPY)->step == 5,
		"pushes for another round there and then");
	rig_release(&r);
}

/* The answer to a push is lost with the link: it may wait for a round that
 * opens only when its learner goes on. */
static void test_wait_unheard(void)
{
	const struct dl_version v0 = {1, 0};
	struct rig r;

	rig_init(&r);
	r.config.wait = 1;
	rig_start(&r);
	steps(&r, 4);
	plain(&r, DL_LE_LOST);
	steps(&r, 2);
	ok(!at(&r, DL_LA_GO), "--wait: held by a push without an answer");
	welcome(&r, 0, 6, v0, v0, 1);
	ok(at(&r, DL_LA_GO) != 0, "but not once a welcome says it was taken");
	rig_release(&r);

	rig_init(&r);
	r.config.wait = 1;
	rig_start(&r);
	steps(&r, 4);
	taken(&r, 1, DL_TAKEN_ROUND);
	plain(&r, DL_LE_LOST);
	steps(&r, 2);
	welcome(&r, 0, 6, v0, v0, 1);
	ok(!at(&r, DL_LA_GO), "one that was heard to be in a round holds on");
	rig_release(&r);
}

/* Fragment 0 is due at 4 and still out at 6, where 1 is due. */
static void test_told(void)
{
	struct rig r;

	rig_init(&r);
	r.config.schedule.fragments = 2;
	r.config.wait = 1;
	rig_start(&r);
	steps(&r, 2);
	settle(&r, 1, 1);
	steps(&r, 4);
	ok(at(&r, DL_LA_STEP) && !at(&r, DL_LA_GO),
		"one who is held says where it is");
	taken(&r, 1, DL_TAKEN_ROUND);
	ok(!r.acts, "and what it hears meanwhile is no reason to say it again");
	plain(&r, DL_LE_LOST);
	welcome(&r, 0, 6, (struct dl_version){1, 0}, (struct dl_version){1, 0},
		2);
	ok(at(&r, DL_LA_STEP) != 0, "but a syncer that it comes back to is");
	rig_release(&r);
}

/* A syncer that goes on from less than it had refuses what was made on more. */
static void test_set_back(void)
{
	const struct dl_version v1 = {7, 1};
	struct rig r;

	rig_init(&r);
	rig_start(&r);
	global(&r, 0, 1, 3, 0, 0);
	steps(&r, 4);
	ok(did(&r, DL_LA_COPY)->base.number == 3, "a push is made on 1.3");
	plain(&r, DL_LE_LOST);
	welcome(&r, 0, 9, v1, v1, 0);
	ok(!dl_version_cmp(did(&r, DL_LA_RESEND)->version, v1),
		"when 1.3 is lost it is sent again as made on 7.1");
	taken(&r, 1, DL_TAKEN_SETTLED);
	steps(&r, 3);
	ok(!dl_version_cmp(did(&r, DL_LA_COPY)->base, v1),
		"and so is the next, before 7.1 has come");
	rig_release(&r);
}

static void test_reconnect(void)
{
	const struct dl_version v0 = {1, 0}, v2 = {2, 0};
	struct rig r;

	rig_init(&r);
	rig_start(&r);
	steps(&r, 4);
	plain(&r, DL_LE_LOST);
	steps(&r, 4);
	ok(!at(&r, DL_LA_COPY) && at(&r, DL_LA_GO),
		"without a syncer it trains on");
	welcome(&r, 0, 9, v0, v0, 0);
	ok(did(&r, DL_LA_RESEND)->seq == 1, "what was not taken is sent again");
	steps(&r, 1);
	ok(dl_learn_clock(r.l) == 10, "the clock is the welcome's");
	plain(&r, DL_LE_LOST);
	welcome(&r, 0, 10, v0, v0, 1);
	ok(!at(&r, DL_LA_RESEND), "what was taken is not");
	taken(&r, 1, DL_TAKEN_SETTLED);
	ok(at(&r, DL_LA_RELEASE) != 0, "and let go when the syncer says so");
	steps(&r, 2);
	ok(did(&r, DL_LA_COPY)->step == 12, "it pushes again");
	plain(&r, DL_LE_LOST);
	welcome(&r, 0, 3, v2, v0, 0);
	ok(did(&r, DL_LA_RESEND)->step == 3,
		"after a clock was set back, so are the pushes");
	ok(!dl_version_cmp(dl_learn_version(r.l, 0), v2),
		"the same values have a new name in a new epoch");
	steps(&r, 1);
	ok(did(&r, DL_LA_CLOCK)->clock == 4,
		"the trainer is told at a boundary");
	global(&r, 0, 2, 3, 0, 0);
	plain(&r, DL_LE_LOST);
	welcome(&r, 0, 3, (struct dl_version){2, 1}, v0, 0);
	steps(&r, 1);
	ok(!at(&r, DL_LA_APPLY), "what a syncer has lost is not applied");
	global(&r, 0, 2, 1, 0, 0);
	steps(&r, 1);
	ok(did(&r, DL_LA_APPLY)->version.number == 1,
		"but what it has instead, though older by its number");
	plain(&r, DL_LE_LOST);
	welcome(&r, 0, 3, v2, v0, 0);
	global(&r, 0, 2, 0, 0, 0);
	steps(&r, 1);
	ok(at(&r, DL_LA_APPLY) && !did(&r, DL_LA_APPLY)->version.number,
		"applied or not");
	rig_release(&r);
}

static void test_trainer(void)
{
	struct rig r;

	rig_init(&r);
	rig_start(&r);
	steps(&r, 3);
	plain(&r, DL_LE_RESET);
	ok(at(&r, DL_LA_LOAD) && at(&r, DL_LA_GO) && info(&r).lost == 3,
		"a trainer that dies takes its unsent steps with it");
	steps(&r, 1);
	ok(did(&r, DL_LA_COPY)->steps == 1, "and no others");
	tell(&r, (struct dl_learn_event){.kind = DL_LE_FAILED, .seq = 1});
	ok(info(&r).lost == 4 && !info(&r).pushed && !info(&r).outstanding,
		"nor does a copy that failed count as pushed");
	steps(&r, 4);
	ok(did(&r, DL_LA_COPY)->seq == 1, "and its number is free again");
	rig_release(&r);
}

static void test_end(void)
{
	struct rig r;

	rig_init(&r);
	rig_start(&r);
	steps(&r, 4);
	taken(&r, 1, DL_TAKEN_ROUND);
	steps(&r, 1);
	plain(&r, DL_LE_END);
	ok(!r.acts, "the end comes at a boundary");
	steps(&r, 1);
	ok(did(&r, DL_LA_COPY)->steps == 2 && !at(&r, DL_LA_GO),
		"everything is pushed, and the trainer stands");
	ok(!at(&r, DL_LA_DRAINED), "it has to arrive");
	taken(&r, 2, DL_TAKEN_ROUND);
	ok(at(&r, DL_LA_DRAINED) != 0, "then `end` is answered");
	global(&r, 0, 1, 1, 6, 1);
	ok(at(&r, DL_LA_APPLY) && did(&r, DL_LA_APPLY)->final &&
			did(&r, DL_LA_APPLY)->apply == DL_APPLY_OVERWRITE,
		"the final values replace all");
	ok(at(&r, DL_LA_APPLIED) < at(&r, DL_LA_FINISH) && info(&r).finished,
		"are acknowledged, and it is finished");
	rig_release(&r);

	rig_init(&r);
	rig_start(&r);
	plain(&r, DL_LE_END);
	steps(&r, 1);
	tell(&r, (struct dl_learn_event){.kind = DL_LE_BYE});
	ok(at(&r, DL_LA_RELEASE) && at(&r, DL_LA_FINISH),
		"a run that is over without it lets it go too");
	rig_release(&r);

	/* As for one that was cut off, and came back after the end. */
	rig_init(&r);
	rig_start(&r);
	global(&r, 0, 1, 1, 6, 0);
	tell(&r, (struct dl_learn_event){.kind = DL_LE_BYE});
	plain(&r, DL_LE_LOST);
	steps(&r, 1);
	ok(at(&r, DL_LA_FINISH) != 0,
		"also when values that are not final have come with it");
	rig_release(&r);
}

static void test_drain(void)
{
	struct rig r;

	rig_init(&r);
	rig_start(&r);
	steps(&r, 1);
	plain(&r, DL_LE_DRAIN);
	ok(!r.acts, "SIGTERM: the step in hand is finished");
	steps(&r, 1);
	ok(did(&r, DL_LA_COPY)->steps == 2 && !at(&r, DL_LA_GO),
		"its work is sent");
	taken(&r, 1, DL_TAKEN_WAITING);
	ok(at(&r, DL_LA_RELEASE) &&
			at(&r, DL_LA_RELEASE) < at(&r, DL_LA_FINISH),
		"once it has arrived the learner is finished");
	rig_release(&r);

	rig_init(&r);
	rig_start(&r);
	steps(&r, 4);
	ok(dl_learn_undelivered(r.l, 0) == 4, "a push has to arrive");
	taken(&r, 1, DL_TAKEN_WAITING);
	ok(!dl_learn_undelivered(r.l, 0), "then it is delivered");
	plain(&r, DL_LE_LOST);
	steps(&r, 3);
	plain(&r, DL_LE_DRAIN);
	steps(&r, 1);
	ok(!at(&r, DL_LA_COPY) && !at(&r, DL_LA_GO) &&
			dl_learn_undelivered(r.l, 0) == 4,
		"without its syncer a draining learner stands and waits");
	plain(&r, DL_LE_RESET);
	ok(!at(&r, DL_LA_LOAD) && at(&r, DL_LA_FINISH),
		"one whose trainer dies loads nothing any more");
	rig_release(&r);

	rig_init(&r);
	rig_start(&r);
	steps(&r, 1);
	plain(&r, DL_LE_DRAIN);
	steps(&r, 1);
	plain(&r, DL_LE_LOST);
	welcome(&r, 0, 2, (struct dl_version){1, 0}, (struct dl_version){1, 0},
		1);
	ok(!at(&r, DL_LA_RESEND) && at(&r, DL_LA_FINISH),
		"what a welcome says was taken has arrived");
	rig_release(&r);

	rig_init(&r);
	r.l = dl_learn_new(&r.config);
	plain(&r, DL_LE_DRAIN);
	ok(at(&r, DL_LA_FINISH) != 0, "nor does one that has no model yet");
	rig_release(&r);
}

/* A newcomer of two fragments with a peer's state of clock 40. */
static void rig_join(struct rig *r)
{
	const struct dl_version has[] = {{3, 7}, {3, 8}};

	rig_init(r);
	r->config.schedule.fragments = 2;
	r->l = dl_learn_new(&r->config);
	tell(r, (struct dl_learn_event){
			.kind = DL_LE_STATE, .clock = 40, .versions = has});
}

static void test_join(void)
{
	const struct dl_version v0 = {3, 0}, v9 = {3, 9};
	struct rig r;

	rig_join(&r);
	ok(did(&r, DL_LA_IMPORT)->clock == 40 && !at(&r, DL_LA_LOAD) &&
			!at(&r, DL_LA_GO) && info(&r).holding,
		"a peer's state is imported; without a syncer it goes nowhere");
	ok(dl_learn_version(r.l, 1).number == 8 && dl_learn_clock(r.l) == 40,
		"hello can say what it has");
	welcome(&r, 0, 44, v9, v0, 0);
	ok(at(&r, DL_LA_CLOCK) && !at(&r, DL_LA_GO),
		"it holds while a fragment is two versions behind");
	global(&r, 1, 3, 9, 43, 0);
	ok(at(&r, DL_LA_APPLY) && !at(&r, DL_LA_COPY) && !at(&r, DL_LA_GO),
		"another's values do not help");
	global(&r, 0, 3, 9, 43, 0);
	ok(at(&r, DL_LA_GO) > at(&r, DL_LA_APPLY), "its own do");
	global(&r, 0, 3, 12, 60, 0);
	steps(&r, 1);
	ok(did(&r, DL_LA_COPY)->steps == 1 && did(&r, DL_LA_COPY)->seq == 1,
		"it counts its own steps only");
	rig_release(&r);

	rig_join(&r);
	welcome(&r, 0, 41, (struct dl_version){3, 8}, v0, 0);
	ok(at(&r, DL_LA_GO) != 0, "one version behind is near enough");
	rig_release(&r);
}

static void test_join_in_trouble(void)
{
	const struct dl_version v0 = {3, 0}, v8 = {3, 8}, v4 = {4, 0};
	struct rig r;

	rig_join(&r);
	welcome(&r, 0, 41, v8, v0, 0);
	steps(&r, 1);
	plain(&r, DL_LE_RESET);
	ok(at(&r, DL_LA_LOAD) && at(&r, DL_LA_GO),
		"a trainer that dies later begins from its anchors");
	rig_release(&r);

	rig_join(&r);
	plain(&r, DL_LE_RESET);
	ok(!at(&r, DL_LA_LOAD) && !at(&r, DL_LA_IMPORT) &&
			!dl_learn_version(r.l, 0).epoch,
		"a state that no trainer takes is forgotten");
	welcome(&r, 0, 41, v8, v0, 0);
	global(&r, 0, 3, 8, 40, 0);
	ok(!at(&r, DL_LA_LOAD), "it begins with the syncer's values");
	global(&r, 1, 3, 8, 40, 0);
	ok(at(&r, DL_LA_LOAD) && at(&r, DL_LA_GO), "when it has them all");
	rig_release(&r);

	rig_join(&r);
	welcome(&r, 0, 30, v4, (struct dl_version){3, 5}, 0);
	ok(!at(&r, DL_LA_GO), "versions that the syncer has lost are behind");
	global(&r, 0, 4, 0, 30, 0);
	global(&r, 1, 4, 0, 30, 0);
	ok(at(&r, DL_LA_GO) && dl_learn_clock(r.l) == 30, "its own count");
	rig_release(&r);

	rig_join(&r);
	plain(&r, DL_LE_DRAIN);
	ok(at(&r, DL_LA_FINISH) != 0, "who leaves at once owes nothing");
	rig_release(&r);
}

static void export_at(struct rig *r, uint64_t clock)
{
	tell(r, (struct dl_learn_event){
			.kind = DL_LE_EXPORT, .clock = clock});
}

static void test_export(void)
{
	struct rig r;

	rig_init(&r);
	rig_start(&r);
	steps(&r, 1);
	export_at(&r, 0);
	ok(!r.acts, "the state is exported at a boundary");
	global(&r, 0, 1, 1, 4, 0);
	steps(&r, 3);
	ok(!at(&r, DL_LA_EXPORT), "once");
	export_at(&r, 8);
	export_at(&r, 6);
	steps(&r, 3);
	ok(!at(&r, DL_LA_EXPORT) && at(&r, DL_LA_GO),
		"not before its clock; nobody waits for that");
	global(&r, 0, 1, 2, 8, 0);
	steps(&r, 1);
	ok(did(&r, DL_LA_EXPORT)->clock == 8 &&
			dl_learn_version(r.l, 0).number == 2,
		"one does for all who want it");
	ok(at(&r, DL_LA_COPY) < at(&r, DL_LA_EXPORT) &&
			at(&r, DL_LA_APPLY) < at(&r, DL_LA_EXPORT) &&
			at(&r, DL_LA_EXPORT) < at(&r, DL_LA_GO),
		"after copies and applies, before it goes on");
	open_round(&r, 0, 40);
	export_at(&r, 20);
	steps(&r, 1);
	ok(did(&r, DL_LA_EXPORT)->clock == 40 &&
			at(&r, DL_LA_CLOCK) < at(&r, DL_LA_EXPORT),
		"a jump gets there too");
	export_at(&r, 0);
	plain(&r, DL_LE_RESET);
	ok(at(&r, DL_LA_LOAD) < at(&r, DL_LA_EXPORT),
		"a trainer that died is asked when it has the model again");
	rig_release(&r);

	rig_init(&r);
	r.config.wait = 1;
	rig_start(&r);
	steps(&r, 6);
	export_at(&r, 0);
	ok(r.acts == 1 && at(&r, DL_LA_EXPORT),
		"a trainer that waits for others has time");
	taken(&r, 1, DL_TAKEN_SETTLED);
	ok(!at(&r, DL_LA_EXPORT) && at(&r, DL_LA_GO), "once, too");
	rig_release(&r);
}

/* Two syncers: fragments 0 and 2, 1 and 3. */
static void test_syncers(void)
{
	static const uint32_t map[] = {0, 1, 0, 1};
	const struct dl_version v0 = {1, 0};
	struct rig r;

	rig_init(&r);
	r.config.schedule.fragments = 4;
	r.config.syncers = 2;
	r.config.syncer = map;
	r.l = dl_learn_new(&r.config);
	welcome(&r, 0, 0, v0, v0, 0);
	welcome(&r, 1, 0, v0, v0, 0);
	for (uint32_t p = 0; p < 4; p++)
		global(&r, p, 1, 0, 0, 0);
	steps(&r, 1);
	ok(did(&r, DL_LA_COPY)->fragment == 1 &&
			did(&r, DL_LA_COPY)->syncer == 1,
		"a push goes to the syncer of its fragment");
	open_round(&r, 2, 10);
	steps(&r, 1);
	ok(dl_learn_clock_at(r.l, 0) == 10 && dl_learn_clock_at(r.l, 1) == 2,
		"an open moves the clock of its syncer");
	ok(did(&r, DL_LA_CLOCK)->clock == 10, "and the trainer's");
	tell(&r, (struct dl_learn_event){.kind = DL_LE_LOST, .syncer = 1});
	steps(&r, 2);
	ok(did(&r, DL_LA_COPY)->fragment == 0 && !did(&r, DL_LA_COPY)->syncer,
		"one goes on without the other");
	rig_release(&r);
}

int main(void)
{
	test_start();
	test_due();
	test_open_and_jump();
	test_on_its_way();
	test_apply();
	test_counters();
	test_wait();
	test_wait_apart();
	test_wait_opened();
	test_wait_unheard();
	test_told();
	test_set_back();
	test_reconnect();
	test_trainer();
	test_end();
	test_drain();
	test_join();
	test_join_in_trouble();
	test_export();
	test_syncers();
	return done_testing();
}
