/*
 * Made-up rounds of every kind: what learners could bring, good and odd.
 */
#ifndef TESTS_MERGE_FIXTURE_H
#define TESTS_MERGE_FIXTURE_H

#include "merge/merge.h"

enum fixture_kind {
	NORMAL,	  /* nearly orthogonal, as learners' are */
	SAME,	  /* all alike */
	ZERO,	  /* all nothing */
	ONE_ZERO, /* the first brings nothing */
	SCALES,	  /* each a hundred times the one before */
	CANCEL,	  /* pairs of opposites, of equal weight */
	NEARLY,	  /* opposites but for a little */
	DENORMAL,
	VAST,
	FIXTURES
};

extern const char *const fixture_name[FIXTURES];

enum { FIXTURE_MOST = 17 };

/* A delta in codes; each segment begins a block. */
struct fixture_codes {
	const struct fixture *of;
	enum dl_codec codec;
	unsigned char *codes, *scales; /* owned */
};

struct fixture {
	struct dl_segment segments[20];
	size_t nsegments;
	size_t n; /* elements of the fragment */
	size_t m;
	struct dl_contribution from[FIXTURE_MOST];
	char name[FIXTURE_MOST][32];
	float *delta[FIXTURE_MOST]; /* what from[] points at, owned */
	struct fixture_codes codes[FIXTURE_MOST];
};

/* Segments of all rules and of lengths around the block's. */
void fixture_init(
	struct fixture *f, enum fixture_kind kind, size_t m, uint64_t seed);
/* That learner brings codes; delta gets what they decode to. */
void fixture_encode(struct fixture *f, size_t j, enum dl_codec codec);
/* All do, in codecs of all kinds. */
void fixture_encode_all(struct fixture *f);
/* Where n elements of a segment that a learner brings are. */
struct dl_codes fixture_find(
	const struct fixture *f, size_t j, size_t offset, size_t n);
void fixture_release(struct fixture *f);

#endif
