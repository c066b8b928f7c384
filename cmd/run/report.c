#include "cmd/run/report.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/run/pass.h"

static void put(struct dl_buf *out, size_t n, const char *what)
{
	if (n)
		dl_buf_printf(out, "%s%zu %s", out->len ? ", " : "", n, what);
}

static void put_refused(struct dl_buf *out, const struct report *r)
{
	for (int i = 1; i < DL_REFUSALS; i++)
		if (r->refused[i])
			dl_buf_printf(out, " (%s: %zu)",
				dl_refusal_name((enum dl_refusal)i),
				r->refused[i]);
}

void report_show(const struct pass *p)
{
	const struct report *r = &p->report;
	struct dl_buf out = DL_BUF_INIT;
	struct dl_sync_info info;

	for (int i = 0; i < DL_TAKENS; i++) {
		put(&out, r->taken[i], dl_taken_name((enum dl_taken)i));
		if (i == DL_TAKEN_REFUSED)
			put_refused(&out, r);
	}
	put(&out, r->unfit, "unfit");
	put(&out, r->waiting, "not taken yet");
	put(&out, r->passed_over, "files passed over");
	put(&out, r->merged, "merged");
	put(&out, r->collected, "old files removed");
	dl_sync_info(p->core, &info);
	cmd_note("clock %llu, %zu of %zu learners live: %s",
		(unsigned long long)info.clock, info.live, info.learners,
		out.len ? dl_buf_cstr(&out) : "nothing new");
	dl_buf_free(&out);
}

/* The first round that waits, and for whom. */
static int describe_round(const struct pass *p, struct dl_buf *out)
{
	struct dl_sync_learner_info l;
	size_t names = 0;

	for (uint32_t f = 0; f < p->layout->fragments; f++) {
		if (!dl_sync_round(p->core, f))
			continue;
		dl_buf_printf(out, "round %llu of fragment %u waits for",
			(unsigned long long)dl_sync_round(p->core, f), f);
		for (size_t i = 0; dl_sync_learner(p->core, i, &l); i++)
			if (dl_sync_awaits(p->core, f, i)) {
				dl_buf_printf(out, " %s", l.name);
				names++;
			}
		if (!names)
			dl_buf_printf(out, " a quorum of %u learners",
				p->options->sync.config.quorum);
		return 1;
	}
	return 0;
}

void report_why(const struct pass *p, char *out, size_t size)
{
	struct dl_buf text = DL_BUF_INIT;
	struct dl_sync_info info;
	int open = describe_round(p, &text);

	dl_sync_info(p->core, &info);
	snprintf(out, size, "%s",
		open		? dl_buf_cstr(&text)
		: info.final	? "learners have to take the final model"
		: info.ending	? "learners have to push what they have"
		: info.live	? "no round is due"
		: info.learners ? "no learner makes steps"
				: "no learner is here");
	dl_buf_free(&text);
}
