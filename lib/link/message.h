/*
 * Messages: what learners and syncers tell each other, each one a record
 * (tensor/record.h) whose dl.kind names it. Packing and unpacking are pure.
 *
 * Numbers are decimal in the metadata, exact over 64 bits; versions are
 * EPOCH.NUMBER; lists are tensors. Words that a later version adds are passed
 * over; tensors that a kind does not have are refused.
 */
#ifndef DL_LINK_MESSAGE_H
#define DL_LINK_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "sync/clock.h"
#include "sync/sync.h"
#include "tensor/layout.h"
#include "tensor/quant.h"
#include "tensor/record.h"

/* Who speaks first: what a peer came for. */
enum dl_role {
	DL_ROLE_LEARNER,
	DL_ROLE_OBSERVER,
	DL_ROLE_ENDER,
	DL_ROLE_STREAM, /* to be one more stream of a learner's connection */
	DL_ROLE_JOINER, /* a learner to be, which looks for a state */
	DL_ROLE_CHECKPOINT, /* wants a checkpoint */
	DL_ROLE_WATCHER,    /* wants figures */
	DL_ROLES
};

enum dl_bye { DL_BYE_RESTARTING, DL_BYE_DONE, DL_BYE_LEAVING, DL_BYES };

enum dl_message_kind {
	DL_MSG_HELLO,	 /* role, run, name, instance, layout, codecs, clock,
			  * steps, tokens, versions, serve, key; the first
			  * message on a link */
	DL_MSG_WELCOME,	 /* run, epoch, clock, h, tau, apply, wait, global, text
			  * (the layout), fragments, versions, origins, seqs;
			  * name, slot: of the learner */
	DL_MSG_ERROR,	 /* code, text; the sender closes */
	DL_MSG_STEP,	 /* clock, steps, tokens, loss */
	DL_MSG_OPEN,	 /* fragment, step */
	DL_MSG_PUSH,	 /* fragment, seq, step, base, steps, tokens, codec;
			  * the delta follows as data */
	DL_MSG_TAKEN,	 /* fragment, seq, taken, refusal, scale */
	DL_MSG_GLOBAL,	 /* fragment, version, base, step, final, codec; as data
			  * follow the values, or with a base what is to be
			  * added to the values of that version */
	DL_MSG_WANT,	 /* fragment */
	DL_MSG_PEERS,	 /* text: as link/offer.h has it */
	DL_MSG_END,	 /* step; from a syncer: push everything; from a
			  * learner: drained; from an ender: please end */
	DL_MSG_APPLIED,	 /* fragment, version */
	DL_MSG_BYE,	 /* bye */
	DL_MSG_ATTACHED, /* to a stream: it carries pieces from now on */
	DL_MSG_STATE,	/* clock, bytes, versions: a file that can be fetched */
	DL_MSG_FETCH,	/* offset, bytes: of that file */
	DL_MSG_PART,	/* offset, hash; what was fetched follows as data */
	DL_MSG_GUEST,	/* name, key: who may come for the learner's state */
	DL_MSG_FIGURES, /* the run's, which follow as data */
	DL_MSG_KINDS
};

/* Of a file that is fetched: bytes at once, and fetches that are not answered
 * yet. */
enum { DL_FETCH_BYTES = 4 << 20, DL_FETCHES = 8 };

#define DL_SLOT_NONE UINT64_MAX /* the learner chooses its data */

struct dl_message {
	enum dl_message_kind kind;
	enum dl_role role;
	/* Strings are NUL-terminated and hold no NUL; NULL packs as "". */
	const char *run;    /* HELLO: "" for any */
	const char *name;   /* HELLO: a good name, or "": a learner's is
			     * then as its key has it; WELCOME: the learner's
			     * from now on, or "" */
	const char *layout; /* HELLO: its hash; "" takes the syncer's */
	const char *codecs; /* HELLO: what it can decode, space between */
	const char *codec;  /* PUSH, GLOBAL: of the data */
	const char *global; /* WELCOME: the codec of updates; "f32": globals
			     * are values */
	const char *apply;  /* WELCOME: the run's, as --apply has it; or "" */
	const char *serve;  /* HELLO: where the learner's state can be had, as
			     * dl_offer_link has it; or "" */
	const char *key;    /* GUEST: a public key as text; HELLO: that it will
			     * have when it comes to others, or "" */
	const char *hash;   /* PART: BLAKE2b of its data, in hexadecimal */
	const char *text;   /* ERROR, PEERS; WELCOME: the layout's text form */
	size_t text_n;	    /* its bytes; set by unpack, unused by pack */
	uint64_t instance;
	/* HELLO: what is wanted, WELCOME: what is granted; 0: data is not
	 * striped */
	uint64_t streams, window;
	uint64_t epoch, clock, h, tau;
	int wait;      /* WELCOME: learners are to --wait */
	uint64_t slot; /* WELCOME: of the learner's data, or DL_SLOT_NONE */
	uint32_t fragment;
	uint64_t seq, step, steps, tokens;
	uint64_t offset, bytes;
	struct dl_version base, version; /* GLOBAL: base 0.0 for values */
	double loss;			 /* STEP: not finite when unknown */
	enum dl_taken taken;
	enum dl_refusal refusal; /* DL_REFUSED_NOT unless taken says so */
	double scale;		 /* TAKEN: in (0, 1] */
	int final;
	int code; /* ERROR: an exit code, 1 to 255 */
	enum dl_bye bye;
	uint32_t fragments; /* P; HELLO, STATE: 0 when it has no versions */
	const struct dl_version *versions, *origins; /* P of them */
	const uint64_t *seqs;			     /* P */
	void *memory; /* private: owns the lists after unpack */
};

const char *dl_message_kind_name(enum dl_message_kind k); /* "hello", ... */
const char *dl_bye_name(enum dl_bye b); /* "restarting", "done", "leaving" */

/* 1 for the kinds whose record carries data: push, global, part, figures. */
int dl_message_has_data(enum dl_message_kind k);

/* Appends the whole record of m, a kind without data, to out. */
void dl_message_pack(const struct dl_message *m, struct dl_buf *out);

/*
 * Appends the header (length and JSON) of m, a push or a global of fragment
 * m->fragment of l in f32, whose name m need not have, to out; the fragment's
 * packed array follows it.
 */
void dl_message_pack_data(const struct dl_message *m, const struct dl_layout *l,
	struct dl_buf *out);

/* The same in the codec of q. */
void dl_message_pack_coded(const struct dl_message *m,
	const struct dl_layout *l, const struct dl_quant *q,
	struct dl_buf *out);

/* The same of a part or figures, which n bytes follow. */
void dl_message_pack_part(
	const struct dl_message *m, uint64_t n, struct dl_buf *out);

/* Of a push or global as parts of a record; q NULL: in f32. */
void dl_message_put_data(const struct dl_message *m, const struct dl_layout *l,
	const struct dl_quant *q, struct dl_writer *w);

/* The metadata alone. */
void dl_message_meta(const struct dl_message *m, struct dl_writer *w);

/*
 * Unpacks a record: its parsed header and, for kinds without data, its data.
 * The strings live as long as h, text as long as data too. 76 names kind and
 * field. The tensors of a push or global are the caller's to check against
 * its layout (dl_layout_check_record), as are fragment numbers against P; a
 * part and figures have one, U8 [n].
 */
int dl_message_unpack(struct dl_message *m, const struct dl_header *h,
	const void *data, struct dl_err *e);
void dl_message_release(struct dl_message *m);

#endif
