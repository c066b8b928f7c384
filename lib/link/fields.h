/*
 * What messages are made of: the fields and tensors of each kind, as tables
 * that packing and unpacking both follow. Private to message_*.c.
 */
#ifndef DL_LINK_FIELDS_H
#define DL_LINK_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "link/message.h"

/* How a field of struct dl_message looks in the metadata. */
enum form {
	NUMBER,	  /* uint64_t */
	POSITIVE, /* uint64_t, not 0 */
	INDEX,	  /* uint32_t, below UINT32_MAX */
	COUNT,	  /* uint32_t, not 0, below UINT32_MAX */
	FLAG,	  /* int, "0" or "1" */
	CODE,	  /* int, 1 to 255 */
	VERSION,  /* struct dl_version, EPOCH.NUMBER */
	START,	  /* the same; left out when it is 0.0 */
	NAME,	  /* a good name or "" */
	CALLED,	  /* a good name; left out when it is "" */
	CODEC,	  /* a good name; left out when it is "f32" */
	SLOT,	  /* uint64_t; left out when it is DL_SLOT_NONE */
	EXTRA,	  /* uint64_t; left out when it is 0 */
	HASH,	  /* a hash in hexadecimal or "" */
	KEY,	  /* a public key; left out when it is "" */
	LINK,	  /* as dl_offer_link has it; left out when it is "" */
	TEXT,	  /* anything without NUL */
	LOSS,	  /* double; left out when not finite */
	SCALE,	  /* double in (0, 1] */
	ROLE,	  /* enums, by their names */
	TAKEN,
	REFUSAL,
	BYE
};

enum field {
	F_APPLY,
	F_BASE,
	F_BYE,
	F_BYTES,
	F_CALLED,
	F_CLOCK,
	F_CODE,
	F_CODEC,
	F_CODECS,
	F_EPOCH,
	F_FINAL,
	F_FRAGMENT,
	F_FRAGMENTS,
	F_FROM,
	F_GLOBAL,
	F_H,
	F_HASH,
	F_INSTANCE,
	F_KEY,
	F_LAYOUT,
	F_LOSS,
	F_NAME,
	F_OFFSET,
	F_REFUSAL,
	F_ROLE,
	F_RUN,
	F_SCALE,
	F_SEQ,
	F_SERVE,
	F_SLOT,
	F_STEP,
	F_STEPS,
	F_STREAMS,
	F_TAKEN,
	F_TAU,
	F_TEXT,
	F_TOKENS,
	F_VERSION,
	F_WAIT,
	F_WINDOW,
	FIELDS
};

extern const struct dl_field {
	const char *key;
	enum form form;
	size_t at; /* in struct dl_message */
} dl_fields[FIELDS];

#define HAS(field) (UINT64_C(1) << (field))
extern const struct dl_kind {
	const char *name;
	uint64_t has; /* bits HAS(enum field) */
} dl_kinds[DL_MSG_KINDS];

/* The i-th name of an enum; NULL past its end. */
const char *dl_field_enum(enum form form, unsigned i);

/* The tensors of a message. Their names are in byte order and the eight-byte
 * ones come first, so a canonical record has their data in this order too. */
enum list { ORIGINS, SEQS, VERSIONS, LAYOUT, LISTS };

extern const struct dl_list {
	const char *name;
	enum dl_dtype dtype;
	unsigned rank; /* of 2: [P, 2]; of 1: [P], or bytes */
} dl_lists[LISTS];

/* May the list of versions be there or not? */
int dl_message_may_have_versions(enum dl_message_kind k);

/* Those that a message of m's kind and m->fragments has, as bits. */
unsigned dl_message_lists(const struct dl_message *m);

#endif
