#include "sim/ledger.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

void dl_ledger_init(struct dl_ledger *l, uint32_t learners, uint32_t fragments)
{
	*l = (struct dl_ledger){.learners = learners, .fragments = fragments};
	l->learner = dl_alloc_array(learners, sizeof *l->learner);
	l->closed = dl_alloc_array(learners, sizeof *l->closed);
	l->spent =
		dl_alloc_array((size_t)learners * fragments, sizeof *l->spent);
}

void dl_ledger_release(struct dl_ledger *l)
{
	free(l->learner);
	free(l->closed);
	free(l->spent);
	free(l->push);
	*l = (struct dl_ledger){0};
}

void dl_ledger_fault(struct dl_ledger *l, const char *fmt, ...)
{
	va_list ap;

	if (l->fault[0])
		return;
	va_start(ap, fmt);
	vsnprintf(l->fault, sizeof l->fault, fmt, ap);
	va_end(ap);
}

static uint64_t *spent(const struct dl_ledger *l, uint32_t m, uint32_t p)
{
	return &l->spent[(size_t)m * l->fragments + p];
}

static uint64_t unsent(const struct dl_ledger *l, uint32_t m, uint32_t p)
{
	return l->learner[m].own / l->fragments - *spent(l, m, p);
}

/* Only so many of the unsent are left. */
static void keep(struct dl_ledger *l, uint32_t m, uint32_t p, uint64_t n)
{
	*spent(l, m, p) = l->learner[m].own / l->fragments - n;
}

void dl_ledger_step(struct dl_ledger *l, uint32_t m)
{
	l->learner[m].own += l->fragments;
}

static size_t take_place(struct dl_ledger *l)
{
	size_t place = l->free;

	if (place < l->pushes) {
		l->free = l->push[place].free;
		return place;
	}
	if (l->pushes == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 256;
		l->push = dl_resize(l->push, l->cap, sizeof *l->push);
	}
	l->free = ++l->pushes;
	return place;
}

size_t dl_ledger_copy(struct dl_ledger *l, uint32_t m, uint32_t p,
	uint64_t instance, uint64_t seq, uint64_t steps)
{
	size_t place = take_place(l);
	uint64_t made = unsent(l, m, p);

	if (steps != made || !steps)
		dl_ledger_fault(l, "a push claims %llu steps, %llu were made",
			(unsigned long long)steps, (unsigned long long)made);
	l->push[place] = (struct dl_ledger_push){.learner = m,
		.fragment = p,
		.instance = instance,
		.seq = seq,
		.steps = made,
		.holders = 1};
	keep(l, m, p, 0);
	return place;
}

void dl_ledger_apply(
	struct dl_ledger *l, uint32_t m, const struct dl_learn_action *a)
{
	uint64_t n = unsent(l, m, a->fragment), left = 0;

	if (a->apply == DL_APPLY_CARRY)
		left = n;
	else if (a->apply == DL_APPLY_BLEND)
		left = (uint64_t)llround(a->alpha * (double)n);
	l->learner[m].overwritten += n - left;
	keep(l, m, a->fragment, left);
}

void dl_ledger_fate(struct dl_ledger *l, size_t push, enum dl_fate fate)
{
	struct dl_ledger_push *x = &l->push[push];

	if (x->fate == DL_FATE_MERGED) {
		if (fate != DL_FATE_LOST)
			dl_ledger_fault(l,
				"push %llu of fragment %u by learner %u was "
				"merged before",
				(unsigned long long)x->seq, x->fragment,
				x->learner);
		return;
	}
	/* One that was dropped is not also lost with its learner. */
	if (fate == DL_FATE_LOST && x->fate != DL_FATE_OUT)
		return;
	x->fate = fate;
}

void dl_ledger_reset(struct dl_ledger *l, uint32_t m)
{
	for (uint32_t p = 0; p < l->fragments; p++) {
		l->learner[m].lost += unsent(l, m, p);
		keep(l, m, p, 0);
	}
}

static void add_push(struct dl_account *a, const struct dl_ledger_push *x)
{
	uint64_t *const where[] = {
		[DL_FATE_OUT] = &a->out,
		[DL_FATE_LATE] = &a->late,
		[DL_FATE_REFUSED] = &a->refused,
		[DL_FATE_LOST] = &a->lost,
		[DL_FATE_MERGED] = &a->merged,
	};

	*where[x->fate] += x->steps;
	a->pushes++;
	a->merged_pushes += x->fate == DL_FATE_MERGED;
	a->late_pushes += x->fate == DL_FATE_LATE;
}

void dl_ledger_hold(struct dl_ledger *l, size_t push)
{
	l->push[push].holders++;
}

void dl_ledger_let_go(struct dl_ledger *l, size_t push)
{
	struct dl_ledger_push *x = &l->push[push];

	if (--x->holders)
		return;
	add_push(&l->closed[x->learner], x);
	x->free = l->free;
	l->free = push;
}

static void add_account(struct dl_account *to, const struct dl_account *from)
{
	to->merged += from->merged;
	to->late += from->late;
	to->refused += from->refused;
	to->lost += from->lost;
	to->out += from->out;
	to->pushes += from->pushes;
	to->merged_pushes += from->merged_pushes;
	to->late_pushes += from->late_pushes;
}

uint64_t dl_ledger_unsent(const struct dl_ledger *l, uint32_t m)
{
	uint64_t sum = 0;

	for (uint32_t p = 0; p < l->fragments; p++)
		sum += unsent(l, m, p);
	return sum;
}

void dl_ledger_sum(
	const struct dl_ledger *l, uint32_t m, struct dl_account *out)
{
	*out = l->learner[m];
	out->unsent = dl_ledger_unsent(l, m);
	add_account(out, &l->closed[m]);
	for (size_t i = 0; i < l->pushes; i++)
		if (l->push[i].holders && l->push[i].learner == m)
			add_push(out, &l->push[i]);
}
