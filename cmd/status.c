#include "cmd/status.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/notify.h"

static int line_open; /* a line on the terminal awaits its end */

int cmd_status_due(const struct cmd_status *s)
{
	return cmd_verbosity >= 0 && dl_now() >= s->due;
}

/* Room on the terminal's line; a longer one could not be rewritten. */
static int columns(void)
{
	struct winsize w;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) || w.ws_col < 2)
		return 79;
	return w.ws_col - 1;
}

void cmd_status_show(struct cmd_status *s, const char *fmt, ...)
{
	int terminal = isatty(STDERR_FILENO);
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	notify_status(line);
	if (terminal)
		fprintf(stderr, "\r\033[K%s: %.*s", cmd_name,
			columns() - (int)strlen(cmd_name) - 2, line);
	else
		fprintf(stderr, "%s: %s\n", cmd_name, line);
	line_open = terminal;
	s->due = dl_now() + (terminal ? DL_SECOND / 5 : 10 * DL_SECOND);
}

char *cmd_status_loss(char out[16], double loss)
{
	if (isnan(loss))
		strcpy(out, "-");
	else
		snprintf(out, 16, "%.4f", loss);
	return out;
}

void cmd_status_end(void)
{
	if (line_open)
		fputc('\n', stderr);
	line_open = 0;
}
