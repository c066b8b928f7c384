#include "link/fields.h"

#define AT(member) offsetof(struct dl_message, member)
const struct dl_field dl_fields[FIELDS] = {
	[F_APPLY] = {"dl.apply", TEXT, AT(apply)},
	[F_BASE] = {"dl.base", VERSION, AT(base)},
	[F_BYE] = {"dl.reason", BYE, AT(bye)},
	[F_BYTES] = {"dl.bytes", POSITIVE, AT(bytes)},
	[F_CALLED] = {"dl.learner", CALLED, AT(name)},
	[F_CLOCK] = {"dl.clock", NUMBER, AT(clock)},
	[F_CODE] = {"dl.code", CODE, AT(code)},
	[F_CODEC] = {"dl.codec", NAME, AT(codec)},
	[F_CODECS] = {"dl.codecs", TEXT, AT(codecs)},
	[F_EPOCH] = {"dl.epoch", POSITIVE, AT(epoch)},
	[F_FINAL] = {"dl.final", FLAG, AT(final)},
	[F_FRAGMENT] = {"dl.fragment", INDEX, AT(fragment)},
	[F_FRAGMENTS] = {"dl.fragments", COUNT, AT(fragments)},
	[F_FROM] = {"dl.base", START, AT(base)},
	[F_GLOBAL] = {"dl.global", CODEC, AT(global)},
	[F_H] = {"dl.h", POSITIVE, AT(h)},
	[F_HASH] = {"dl.hash", HASH, AT(hash)},
	[F_INSTANCE] = {"dl.instance", NUMBER, AT(instance)},
	[F_KEY] = {"dl.key", KEY, AT(key)},
	[F_LAYOUT] = {"dl.layout", HASH, AT(layout)},
	[F_LOSS] = {"dl.loss", LOSS, AT(loss)},
	[F_NAME] = {"dl.learner", NAME, AT(name)},
	[F_OFFSET] = {"dl.offset", NUMBER, AT(offset)},
	[F_REFUSAL] = {"dl.refusal", REFUSAL, AT(refusal)},
	[F_ROLE] = {"dl.role", ROLE, AT(role)},
	[F_RUN] = {"dl.run", NAME, AT(run)},
	[F_SCALE] = {"dl.scale", SCALE, AT(scale)},
	[F_SEQ] = {"dl.seq", POSITIVE, AT(seq)},
	[F_SERVE] = {"dl.serve", LINK, AT(serve)},
	[F_SLOT] = {"dl.slot", SLOT, AT(slot)},
	[F_STEP] = {"dl.step", NUMBER, AT(step)},
	[F_STEPS] = {"dl.steps", NUMBER, AT(steps)},
	[F_STREAMS] = {"dl.streams", EXTRA, AT(streams)},
	[F_TAKEN] = {"dl.taken", TAKEN, AT(taken)},
	[F_TAU] = {"dl.tau", NUMBER, AT(tau)},
	[F_TEXT] = {"dl.text", TEXT, AT(text)},
	[F_TOKENS] = {"dl.tokens", NUMBER, AT(tokens)},
	[F_VERSION] = {"dl.version", VERSION, AT(version)},
	[F_WAIT] = {"dl.wait", FLAG, AT(wait)},
	[F_WINDOW] = {"dl.window", EXTRA, AT(window)},
};

const struct dl_kind dl_kinds[DL_MSG_KINDS] = {
	[DL_MSG_HELLO] = {"hello",
		HAS(F_ROLE) | HAS(F_RUN) | HAS(F_NAME) | HAS(F_INSTANCE) |
			HAS(F_LAYOUT) | HAS(F_CODECS) | HAS(F_CLOCK) |
			HAS(F_STEPS) | HAS(F_TOKENS) | HAS(F_STREAMS) |
			HAS(F_WINDOW) | HAS(F_SERVE) | HAS(F_KEY)},
	[DL_MSG_WELCOME] = {"welcome",
		HAS(F_RUN) | HAS(F_EPOCH) | HAS(F_CLOCK) | HAS(F_H) |
			HAS(F_TAU) | HAS(F_APPLY) | HAS(F_WAIT) |
			HAS(F_GLOBAL) | HAS(F_FRAGMENTS) | HAS(F_CALLED) |
			HAS(F_SLOT) | HAS(F_STREAMS) | HAS(F_WINDOW)},
	[DL_MSG_ERROR] = {"error", HAS(F_CODE) | HAS(F_TEXT)},
	[DL_MSG_STEP] = {"step",
		HAS(F_CLOCK) | HAS(F_STEPS) | HAS(F_TOKENS) | HAS(F_LOSS)},
	[DL_MSG_OPEN] = {"open", HAS(F_FRAGMENT) | HAS(F_STEP)},
	[DL_MSG_PUSH] = {"push", HAS(F_FRAGMENT) | HAS(F_SEQ) | HAS(F_STEP) |
					 HAS(F_BASE) | HAS(F_STEPS) |
					 HAS(F_TOKENS) | HAS(F_CODEC)},
	[DL_MSG_TAKEN] = {"taken", HAS(F_FRAGMENT) | HAS(F_SEQ) | HAS(F_TAKEN) |
					   HAS(F_REFUSAL) | HAS(F_SCALE)},
	[DL_MSG_GLOBAL] = {"global", HAS(F_FRAGMENT) | HAS(F_VERSION) |
					     HAS(F_FROM) | HAS(F_STEP) |
					     HAS(F_FINAL) | HAS(F_CODEC)},
	[DL_MSG_WANT] = {"want", HAS(F_FRAGMENT)},
	[DL_MSG_PEERS] = {"peers", HAS(F_TEXT)},
	[DL_MSG_END] = {"end", HAS(F_STEP)},
	[DL_MSG_APPLIED] = {"applied", HAS(F_FRAGMENT) | HAS(F_VERSION)},
	[DL_MSG_BYE] = {"bye", HAS(F_BYE)},
	[DL_MSG_ATTACHED] = {"attached", 0},
	[DL_MSG_STATE] = {"state", HAS(F_CLOCK) | HAS(F_BYTES)},
	[DL_MSG_FETCH] = {"fetch", HAS(F_OFFSET) | HAS(F_BYTES)},
	[DL_MSG_PART] = {"part", HAS(F_OFFSET) | HAS(F_HASH)},
	[DL_MSG_GUEST] = {"guest", HAS(F_NAME) | HAS(F_KEY)},
	[DL_MSG_FIGURES] = {"figures", 0},
};

const struct dl_list dl_lists[LISTS] = {
	[ORIGINS] = {"origins", DL_U64, 2},
	[SEQS] = {"taken", DL_U64, 1},
	[VERSIONS] = {"versions", DL_U64, 2},
	[LAYOUT] = {"layout", DL_U8, 1},
};

int dl_message_may_have_versions(enum dl_message_kind k)
{
	return k == DL_MSG_HELLO || k == DL_MSG_STATE;
}

unsigned dl_message_lists(const struct dl_message *m)
{
	if (m->kind == DL_MSG_WELCOME)
		return 1 << ORIGINS | 1 << SEQS | 1 << VERSIONS | 1 << LAYOUT;
	return dl_message_may_have_versions(m->kind) && m->fragments
		       ? 1 << VERSIONS
		       : 0;
}

const char *dl_message_kind_name(enum dl_message_kind k)
{
	return dl_kinds[k].name;
}

int dl_message_has_data(enum dl_message_kind k)
{
	return k == DL_MSG_PUSH || k == DL_MSG_GLOBAL || k == DL_MSG_PART ||
	       k == DL_MSG_FIGURES;
}

static const char *const bye_names[DL_BYES] = {
	[DL_BYE_RESTARTING] = "restarting",
	[DL_BYE_DONE] = "done",
	[DL_BYE_LEAVING] = "leaving",
};

const char *dl_bye_name(enum dl_bye b)
{
	return bye_names[b];
}

static const char *const role_names[DL_ROLES] = {
	[DL_ROLE_LEARNER] = "learner",
	[DL_ROLE_OBSERVER] = "observer",
	[DL_ROLE_ENDER] = "ender",
	[DL_ROLE_STREAM] = "stream",
	[DL_ROLE_JOINER] = "joiner",
	[DL_ROLE_CHECKPOINT] = "checkpoint",
	[DL_ROLE_WATCHER] = "watcher",
};

const char *dl_field_enum(enum form form, unsigned i)
{
	switch (form) {
	case ROLE:
		return i < DL_ROLES ? role_names[i] : NULL;
	case TAKEN:
		return i < DL_TAKENS ? dl_taken_name(i) : NULL;
	case REFUSAL:
		return i < DL_REFUSALS ? dl_refusal_name(i) : NULL;
	default:
		return i < DL_BYES ? bye_names[i] : NULL;
	}
}
