/* Those whom a syncer has named to a learner. */
#include <string.h>

#include "base/num.h"
#include "cmd/learn/guests.h"
#include "tests/tap.h"

static const unsigned char *key(int n)
{
	static unsigned char k[DL_KEY];

	k[0] = (unsigned char)n;
	k[DL_KEY - 1] = (unsigned char)(n >> 8);
	return k;
}

int main(void)
{
	const int64_t minute = 60 * DL_SECOND;
	struct guests g = {0};
	const struct guest *guest;

	ok(!guests_find(&g, key(1), 0), "nobody is a guest");
	guests_add(&g, "joe", key(1), 0);
	guest = guests_find(&g, key(1), 9 * minute);
	ok(guest && !strcmp(guest->name, "joe"), "one who was named is");
	ok(!guests_find(&g, key(2), 0), "another is not");
	ok(!guests_find(&g, key(1), 10 * minute), "nor for ever");
	guests_add(&g, "jim", key(1), 5 * minute);
	guest = guests_find(&g, key(1), 14 * minute);
	ok(guest && !strcmp(guest->name, "jim") && g.n == 1,
		"unless it is named again");
	for (int i = 2; i <= GUESTS; i++)
		guests_add(&g, "", key(i), i);
	ok(g.n == GUESTS && guests_find(&g, key(2), minute), "many are");
	guests_add(&g, "", key(999), minute);
	ok(g.n == GUESTS && guests_find(&g, key(999), minute) &&
			!guests_find(&g, key(2), minute) &&
			guests_find(&g, key(3), minute),
		"of too many the one named first is forgotten");
	return done_testing();
}
