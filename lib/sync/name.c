/* Names: of learners, and of what the core says. */
#include "sync/sync.h"

int dl_name_ok(const char *s, size_t n)
{
	if (n < 1 || n > DL_NAME_MAX || s[0] == '.')
		return 0;
	for (size_t i = 0; i < n; i++) {
		char c = s[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z')
			&& !(c >= '0' && c <= '9') && c != '.' && c != '_'
			&& c != '-')
			return 0;
	}
	return 1;
}

const char *dl_taken_name(enum dl_taken t)
{
	static const char *const names[DL_TAKENS] = {"round", "waiting", "now",
		"late", "again", "refused", "settled"};

	return names[t];
}

const char *dl_refusal_name(enum dl_refusal r)
{
	static const char *const names[DL_REFUSALS] = {"not", "finite", "empty",
		"base", "count", "clock", "rate", "norm", "end",
		"barred"};

	return names[r];
}
