/*
 * The books of a simulated fleet: where every own step of every learner went,
 * fragment by fragment, kept apart from the cores' own counters so that each
 * can be checked against the other.
 */
#ifndef DL_SIM_LEDGER_H
#define DL_SIM_LEDGER_H

#include <stddef.h>
#include <stdint.h>

#include "learn/learn.h"

/* Own steps, summed over fragments: own is the sum of the others. */
struct dl_account {
	uint64_t own;
	uint64_t merged;
	uint64_t late, refused; /* wasted */
	uint64_t overwritten;	/* by an apply */
	uint64_t lost;		/* with a trainer, an instance, a syncer */
	uint64_t unsent;
	uint64_t out; /* pushed, not yet known where it goes */
	uint64_t pushes, merged_pushes, late_pushes;
};

enum dl_fate {
	DL_FATE_OUT,
	DL_FATE_LATE,
	DL_FATE_REFUSED,
	DL_FATE_LOST,
	DL_FATE_MERGED, /* for good */
};

struct dl_ledger_push {
	uint32_t learner, fragment;
	uint64_t instance, seq, steps;
	enum dl_fate fate;
	uint32_t holders; /* 0: its place is free */
	size_t free;	  /* ... and this is the next such */
};

struct dl_ledger {
	uint32_t learners, fragments;
	struct dl_account *learner; /* without unsent and what pushes hold */
	struct dl_account *closed;  /* of pushes that nobody holds any more */
	uint64_t *spent;	    /* learners x fragments: of its steps, those
				     * that are in a push or lost */
	struct dl_ledger_push *push;
	size_t pushes, cap, free; /* places; the first free one, or pushes */
	char fault[200];	  /* the first rule that was broken */
};

void dl_ledger_init(struct dl_ledger *l, uint32_t learners, uint32_t fragments);
void dl_ledger_release(struct dl_ledger *l);

/* Notes a broken rule; only the first is kept. */
void dl_ledger_fault(struct dl_ledger *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

void dl_ledger_step(struct dl_ledger *l, uint32_t m);
/* A copy was made for a push that claims steps; returns its number, which is
 * good as long as somebody holds the push. The caller does. */
size_t dl_ledger_copy(struct dl_ledger *l, uint32_t m, uint32_t p,
	uint64_t instance, uint64_t seq, uint64_t steps);
void dl_ledger_hold(struct dl_ledger *l, size_t push);
void dl_ledger_let_go(struct dl_ledger *l, size_t push);
void dl_ledger_apply(
	struct dl_ledger *l, uint32_t m, const struct dl_learn_action *a);
void dl_ledger_fate(struct dl_ledger *l, size_t push, enum dl_fate fate);
/* The trainer of m died: what was not sent is lost. */
void dl_ledger_reset(struct dl_ledger *l, uint32_t m);

/* Own steps of m in no push yet, summed over fragments. */
uint64_t dl_ledger_unsent(const struct dl_ledger *l, uint32_t m);
/* The whole account of m: what its pushes came to added up. */
void dl_ledger_sum(
	const struct dl_ledger *l, uint32_t m, struct dl_account *out);

#endif
