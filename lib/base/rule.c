#include "base/rule.h"

#include <string.h>

static const char *const names[DL_RULES] = {
	[DL_RDA] = "rda",
	[DL_MEAN] = "mean",
	[DL_STAT] = "stat",
	[DL_LAST] = "last",
	[DL_ALIAS] = "alias",
};

const char *dl_rule_name(enum dl_rule rule)
{
	return names[rule];
}

int dl_rule_parse(const char *s, size_t n)
{
	for (int rule = 0; rule < DL_RULES; rule++)
		if (strlen(names[rule]) == n && !memcmp(names[rule], s, n))
			return rule;
	return -1;
}
