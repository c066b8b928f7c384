/*
 * Goodput: the paper's table, what theory has closed forms for, and books that
 * balance.
 */
#include "sim/goodput.h"

#include <math.h>

#include "../tap.h"

enum { RUNS = 20 };

struct mean {
	double mean, error;
};

/* Of that share over several seeds; -1: of the uptime. */
static struct mean measure(struct dl_goodput_config c, int share)
{
	double sum = 0, squares = 0;
	struct mean m;

	for (int i = 0; i < RUNS; i++) {
		struct dl_goodput_result r;
		double x;

		c.seed = (uint64_t)i + 1;
		dl_goodput_run(&c, &r);
		x = share < 0 ? r.uptime : r.share[share];
		sum += x;
		squares += x * x;
	}
	m.mean = sum / RUNS;
	m.error = sqrt(fmax(squares / RUNS - m.mean * m.mean, 0) / (RUNS - 1));
	return m;
}

static void check(struct mean m, double exact, const char *what)
{
	ok(fabs(m.mean - exact) <= 3 * m.error,
		"%s: %.5f +- %.5f, in theory %.5f", what, m.mean, m.error,
		exact);
}

static const double chips[] = {150e3, 300e3, 600e3, 1.2e6, 2.4e6};

static void test_paper(void)
{
	static const double rigid[] = {72, 57, 38, 27, 18};
	static const double elastic[] = {88, 80, 69, 58, 40};
	static const double decoupled[] = {98, 96, 94, 88, 80};
	static const struct {
		const char *name;
		const double *row;
		int rigid;
		uint32_t learners;
	} rows[] = {{"rigid", rigid, 1, 1}, {"elastic", elastic, 0, 1},
		{"decoupled", decoupled, 0, 8}};

	for (int k = 0; k < 3; k++)
		for (int i = 0; i < 5; i++) {
			struct dl_goodput_config c;
			struct dl_goodput_result r;
			double percent;

			dl_goodput_config_default(&c);
			c.chips = chips[i];
			c.rigid = rows[k].rigid;
			c.learners = rows[k].learners;
			dl_goodput_run(&c, &r);
			percent = 100 * r.share[DL_GOODPUT_USEFUL];
			ok(fabs(percent - rows[k].row[i]) <= 3,
				"%s, %.0f chips: %.1f%%, in the paper %.0f%%",
				rows[k].name, chips[i], percent,
				rows[k].row[i]);
		}
}

static void test_rule_of_thumb(void)
{
	for (uint32_t m = 2; m <= 16; m *= 2) {
		struct dl_goodput_config c;
		struct dl_goodput_result many, one;

		dl_goodput_config_default(&c);
		c.chips = 1.2e6;
		c.learners = m;
		dl_goodput_run(&c, &many);
		c.chips /= m;
		c.learners = 1;
		dl_goodput_run(&c, &one);
		ok(fabs(many.share[0] - one.share[0]) < 0.01,
			"%u learners are as good as one on a share: %.3f, %.3f",
			m, many.share[0], one.share[0]);
		ok(m < 4 || many.uptime > 0.998, "and somebody trains: %.5f",
			many.uptime);
	}
}

/* One slice: it trains to the end of the step in which it is interrupted, after
 * an exponential time, and is back a constant time after that. */
static void test_two_states(void)
{
	struct dl_goodput_config c;
	double mean = 1000, up;

	dl_goodput_config_default(&c);
	c.chips = 1;
	c.interrupted = mean;
	c.time = 4e6;
	up = c.step / (1 - exp(-c.step / mean)) / (mean + c.back + c.up);
	check(measure(c, DL_GOODPUT_USEFUL), up,
		"availability of one elastic slice");
	c.rigid = 1;
	check(measure(c, DL_GOODPUT_USEFUL), up, "... and of a rigid one");
	c.learners = 2;
	c.chips = 2;
	c.rigid = 0;
	check(measure(c, -1), 1 - (1 - up) * (1 - up), "uptime of two");
	c.quorum = 2;
	check(measure(c, -1), up * up, "... of which both are wanted");
}

/* No stalls and short steps: each slice is away for a constant time after an
 * exponential one, independent of the others. */
static void test_infinite_servers(void)
{
	struct dl_goodput_config c;
	double load;

	dl_goodput_config_default(&c);
	c.chips = 1000;
	c.slice = 1;
	c.interrupted = 50000;
	c.back = 500;
	c.down = c.up = c.gather = 0;
	c.step = 0.001;
	c.time = 2e5;
	load = c.back / c.interrupted;
	c.time = 1e6;
	check(measure(c, DL_GOODPUT_MISSING), load / (1 + load),
		"chips away without stalls");
}

static void test_books(void)
{
	struct dl_goodput_config c;
	struct dl_goodput_result r, again;
	double sum = 0;

	dl_goodput_config_default(&c);
	c.chips = 2.4e6;
	c.learners = 3;
	c.spread = 0.2;
	dl_goodput_run(&c, &r);
	for (int i = 0; i < DL_GOODPUT_SHARES; i++)
		sum += r.share[i];
	ok(fabs(sum - 1) < 1e-9, "all chip time is accounted for: %.12f", sum);
	ok(r.share[DL_GOODPUT_SLOW] > 0.05, "and some waits for slow slices");
	dl_goodput_run(&c, &again);
	ok(again.share[0] == r.share[0] && again.failures == r.failures,
		"equal seeds, equal runs");
	c.seed++;
	dl_goodput_run(&c, &again);
	ok(again.share[0] != r.share[0], "others, others");
	c.rigid = 1;
	c.learners = 1;
	c.spread = 0;
	dl_goodput_run(&c, &again);
	c.checkpoint = 10;
	dl_goodput_run(&c, &r);
	ok(r.share[0] < again.share[0], "lost steps are lost: %.3f, %.3f",
		r.share[0], again.share[0]);
}

/* Young's interval is nearly the best. */
static void test_young(void)
{
	struct dl_goodput_config c;
	double best;

	dl_goodput_config_default(&c);
	c.rigid = 1;
	c.chips = 20000;
	c.checkpoint = 30;
	best = measure(c, DL_GOODPUT_USEFUL).mean;
	c.every = 4 * sqrt(2 * c.checkpoint * c.interrupted / c.chips);
	ok(measure(c, DL_GOODPUT_USEFUL).mean < best, "not four times it");
	c.every /= 16;
	ok(measure(c, DL_GOODPUT_USEFUL).mean < best, "nor a quarter");
}

int main(void)
{
	test_paper();
	test_rule_of_thumb();
	test_two_states();
	test_infinite_servers();
	test_books();
	test_young();
	return done_testing();
}
