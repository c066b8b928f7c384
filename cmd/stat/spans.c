#include "cmd/stat/spans.h"

#include <string.h>

int span_next(const struct dl_stat_member *m, struct span *span)
{
	size_t at = span->end;
	char letter = m->timeline[at];

	if (!letter)
		return 0;
	span->first = at;
	while (m->timeline[at] == letter)
		at++;
	span->end = at;
	span->state = (enum dl_stat_state)(
		strchr(dl_stat_state_letters, letter) - dl_stat_state_letters);
	return 1;
}
