#include "train/line.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

static int bad(const char *s, struct dl_err *e)
{
	char shown[80];

	return dl_fail(e, DL_PROTOCOL,
		"trainer: \"%s\" is not a line of dl-trainer(7)",
		dl_scrub(shown, sizeof shown, s, strlen(s)));
}

/* A loss that has diverged is still a step. */
static int parse_loss(const char *s, double *out)
{
	static const char *const diverged[] = {"nan", "-nan", "inf", "-inf"};

	*out = NAN;
	for (size_t i = 0; i < sizeof diverged / sizeof *diverged; i++)
		if (strcmp(s, diverged[i]) == 0)
			return 0;
	return dl_parse_double(s, -HUGE_VAL, HUGE_VAL, out);
}

/* What a learner's tokens weigh is the syncer's to say, but more than it takes
 * for a step, or none, is no count. */
static const uint64_t tokens_most = UINT64_C(1) << 40;

static int check_tokens(uint64_t tokens, struct dl_err *e)
{
	if (tokens >= 1 && tokens <= tokens_most)
		return 0;
	return dl_fail(e, DL_PROTOCOL,
		"trainer: says that a step had %" PRIu64 " tokens", tokens);
}

static int parse_step(struct dl_line *out, char *args)
{
	char *loss = strchr(args, ' ');

	if (!loss)
		return -1;
	*loss++ = '\0';
	out->kind = DL_LINE_STEP;
	return dl_parse_u64(args, 0, UINT64_MAX, &out->tokens) ||
			       parse_loss(loss, &out->loss)
		       ? -1
		       : 0;
}

int dl_line_parse(
	struct dl_line *out, const char *s, size_t n, struct dl_err *e)
{
	char line[DL_LINE_MAX + 1];

	if (n > DL_LINE_MAX)
		return dl_fail(e, DL_PROTOCOL,
			"trainer: a line of more than %d bytes", DL_LINE_MAX);
	memcpy(line, s, n);
	line[n] = '\0';
	if (strlen(line) != n)
		return bad(line, e);
	if (strcmp(line, "ok") == 0) {
		out->kind = DL_LINE_OK;
	} else if (strcmp(line, "ready 1") == 0) {
		out->kind = DL_LINE_READY;
	} else if (strncmp(line, "ready ", 6) == 0) {
		return dl_fail(e, DL_PROTOCOL,
			"trainer: speaks another protocol than %d",
			DL_TRAINER_PROTOCOL);
	} else if (strncmp(line, "error ", 6) == 0) {
		out->kind = DL_LINE_ERROR;
		dl_scrub(out->text, sizeof out->text, line + 6, n - 6);
	} else if (strncmp(line, "step ", 5) != 0) {
		return bad(line, e);
	} else {
		char args[DL_LINE_MAX + 1];

		strcpy(args, line + 5);
		if (parse_step(out, args))
			return bad(line, e);
		return check_tokens(out->tokens, e);
	}
	return 0;
}
