#include "cmd/sim-list.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/cmd.h"

void sim_list(struct sim_list *l, const char *option, const char *arg,
	double (*item)(const char *option, const char *arg))
{
	char *text = dl_strdup(arg), *rest = text, *part;

	l->n = 0;
	while ((part = strsep(&rest, ","))) {
		if (l->n == SIM_LIST_MOST)
			cmd_usage("%s: more than %d", option, SIM_LIST_MOST);
		l->item[l->n++] = item(option, part);
	}
	free(text);
}

double sim_count(const char *option, const char *arg)
{
	uint64_t v = cmd_size(option, arg);

	if (!v || v > 100000)
		cmd_usage("%s %s: not from 1 to 100000", option, arg);
	return (double)v;
}
