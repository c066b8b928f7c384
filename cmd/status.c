#include "cmd/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/num.h"
#include "cmd/cmd.h"

int cmd_status_due(const struct cmd_status *s)
{
	return cmd_verbosity >= 0 && dl_now() >= s->due;
}

void cmd_status_show(struct cmd_status *s, const char *fmt, ...)
{
	int terminal = isatty(STDERR_FILENO);
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (terminal)
		fprintf(stderr, "\r\033[K%s: %s", cmd_name, line);
	else
		fprintf(stderr, "%s: %s\n", cmd_name, line);
	s->open = terminal;
	s->due = dl_now() + (terminal ? DL_SECOND / 5 : 10 * DL_SECOND);
}

void cmd_status_end(struct cmd_status *s)
{
	if (s->open)
		fputc('\n', stderr);
	s->open = 0;
}
