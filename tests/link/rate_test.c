/*
 * The token bucket, in invented time.
 */
#include "link/rate.h"
#include "tests/tap.h"

enum { FRAME = 65535 };

/* Bytes that go in so many seconds when n go whenever they may, and the clock
 * moves by `tick` ns at a time. */
static uint64_t run(struct dl_rate *r, uint64_t n, int64_t seconds,
	int64_t tick, int64_t start)
{
	uint64_t bytes = 0;
	int64_t now;

	for (now = start; now < start + seconds * DL_SECOND; now += tick)
		while (now >= dl_rate_next(r)) {
			dl_rate_take(r, n, now);
			bytes += n;
		}
	return bytes;
}

/* Between the rate without, and with the burst and one taking too many. */
static int near(uint64_t bytes, uint64_t rate, uint64_t seconds, uint64_t n)
{
	uint64_t right = rate * seconds;

	return bytes + rate / 20 >= right && bytes <= right + rate / 20 + n;
}

static void test_rate(void)
{
	static const uint64_t rates[] = {1000, 1250000, 100000000};
	static const uint64_t sizes[] = {11, 1400, FRAME, 1 << 20};
	size_t i, k;

	for (i = 0; i < 3; i++)
		for (k = i; k < 4; k++) {
			struct dl_rate r = {.bytes = rates[i]};
			uint64_t got = run(&r, sizes[k], 20, DL_SECOND / 1000,
				1000 * DL_SECOND);

			ok(near(got, rates[i], 20, sizes[k]),
				"%llu a second in takings of %llu: %llu in "
				"20 s",
				(unsigned long long)rates[i],
				(unsigned long long)sizes[k],
				(unsigned long long)got);
		}
}

static void test_idle(void)
{
	struct dl_rate r = {.bytes = 1000000};
	int64_t day = 86400 * DL_SECOND;

	run(&r, 1000, 1, DL_SECOND / 1000, 0);
	ok(run(&r, 1000, 1, DL_SECOND / 1000, day) <= 1051000,
		"a day of silence earns one burst");
}

static void test_debt(void)
{
	struct dl_rate r = {.bytes = 1000};

	dl_rate_take(&r, 10000, DL_SECOND);
	ok(dl_rate_next(&r) > 10 * DL_SECOND &&
			dl_rate_next(&r) <= 11 * DL_SECOND,
		"what went beyond the tokens is waited for");
}

static void test_none(void)
{
	struct dl_rate r = {0};

	dl_rate_take(&r, UINT32_MAX, 0);
	ok(dl_rate_next(&r) < 0, "no rate, no waiting");
}

static void test_extremes(void)
{
	struct dl_rate slow = {.bytes = 1}, fast = {.bytes = UINT64_C(1) << 40};

	dl_rate_take(&slow, UINT32_MAX, 0);
	ok(dl_rate_next(&slow) > UINT32_MAX / 2 * DL_SECOND,
		"4 GiB at a byte a second");
	dl_rate_take(&fast, 1, DL_SECOND);
	ok(dl_rate_next(&fast) <= DL_SECOND, "1 byte at 1 TiB a second");
}

int main(void)
{
	test_rate();
	test_idle();
	test_debt();
	test_none();
	test_extremes();
	return done_testing();
}
