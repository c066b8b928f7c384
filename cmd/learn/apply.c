#include "cmd/learn/apply.h"

#include <string.h>

#include "base/num.h"

int learn_parse_apply(const char *s, enum dl_apply *apply, double *alpha)
{
	*alpha = 0;
	if (strcmp(s, "overwrite") == 0)
		*apply = DL_APPLY_OVERWRITE;
	else if (strcmp(s, "carry") == 0)
		*apply = DL_APPLY_CARRY;
	else if (strncmp(s, "blend:", 6) == 0 &&
		 !dl_parse_double(s + 6, 0, 1, alpha))
		*apply = DL_APPLY_BLEND;
	else
		return -1;
	return 0;
}
