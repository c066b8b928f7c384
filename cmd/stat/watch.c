#include "cmd/stat/watch.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"

void watch_init(struct watch *w, const char *output, int64_t period)
{
	*w = (struct watch){.output = output,
		.period = period,
		.terminal = period && !strcmp(output, "-") &&
			    isatty(STDOUT_FILENO)};
}

void watch_begin(const struct watch *w, struct dl_buf *out)
{
	if (w->terminal)
		dl_buf_str(out, "\033[H\033[2J");
}

int watch_write(struct watch *w, const struct dl_buf *out, struct dl_err *e)
{
	return dl_write_file(w->output, out->data, out->len, e);
}

int watch_wait(const struct watch *w)
{
	struct timespec t = {
		w->period / DL_SECOND, (long)(w->period % DL_SECOND)};

	if (!w->period || w->over)
		return 0;
	nanosleep(&t, NULL);
	return 1;
}
