/*
 * A tape whose times are known comes out as they are.
 */
#include "sim/measured.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../tap.h"
#include "base/mem.h"
#include "state/tape.h"

enum { P = 2, H = 40, STRETCHES = 30 };

static int64_t now;

static void put(struct dl_buf *out, struct dl_sync_event ev)
{
	ev.now = now;
	dl_tape_write_event(out, &ev, NULL, P, now);
}

static void start(struct dl_buf *out)
{
	struct dl_tape_start s = {.run = "r"};

	memset(s.layout, 'a', sizeof s.layout - 1);
	dl_sync_config_default(&s.config, P);
	s.config.schedule.h = H;
	s.config.tau = 3;
	dl_tape_write_start(out, &s, now, now);
}

/* Steps of a second each; every third time H of them take as much again. */
static void train(struct dl_buf *out, const char *name, uint64_t instance)
{
	put(out, (struct dl_sync_event){.kind = DL_EV_STEP,
			 .learner = name,
			 .instance = instance,
			 .loss = 1});
	for (uint64_t i = 1; i <= STRETCHES; i++) {
		now += H * DL_SECOND * (i % 3 ? 1 : 2);
		put(out, (struct dl_sync_event){.kind = DL_EV_STEP,
				 .learner = name,
				 .instance = instance,
				 .clock = i * H,
				 .steps = i * H,
				 .tokens = i * H,
				 .loss = 1});
	}
}

static void push(struct dl_buf *out, uint32_t p, uint64_t elements)
{
	struct dl_sync_event ev = {.kind = DL_EV_PUSH,
		.learner = "a",
		.instance = 7,
		.fragment = p,
		.seq = 1,
		.steps = H,
		.tokens = H,
		.base = {1, 0},
		.elements = elements,
		.bytes = 2 * elements};

	put(out, ev);
	ev.kind = DL_EV_APPLIED;
	ev.version = (struct dl_version){1, 1};
	ev.bytes = 4 * elements;
	put(out, ev);
}

static int measure(const struct dl_buf *tape, double step,
	struct dl_measured *m, struct dl_bandwidth_config *c, struct dl_err *e)
{
	FILE *f = tmpfile();
	int rc;

	dl_bandwidth_config_default(c);
	c->step = step;
	if (!f || fwrite(tape->data, 1, tape->len, f) != tape->len ||
		fflush(f) || lseek(fileno(f), 0, SEEK_SET))
		return -1;
	rc = dl_measured_read(m, c, fileno(f), "tape", e);
	fclose(f);
	return rc;
}

int main(void)
{
	struct dl_buf tape = DL_BUF_INIT;
	struct dl_bandwidth_config c;
	struct dl_measured m;
	struct dl_err e;
	int rc;

	start(&tape);
	train(&tape, "a", 7);
	rc = measure(&tape, 0, &m, &c, &e);
	ok(rc == DL_DATA, "nothing sent: %s", e.text);
	push(&tape, 0, 3000);
	push(&tape, 1, 1000);
	/* Time does not count while a process is not there. */
	now += 1000 * DL_SECOND;
	train(&tape, "a", 8);
	now += 1000 * DL_SECOND;
	start(&tape);
	now += 1000 * DL_SECOND;
	train(&tape, "b", 9);
	ok(!measure(&tape, 0, &m, &c, &e), "a tape is read");
	ok(m.learners == 2 && m.steps == 3 * STRETCHES * H,
		"%u learners, %.0f steps", m.learners, m.steps);
	ok(fabs(c.step - 1) < 1e-9, "an undisturbed step: %.9f", c.step);
	ok(fabs(m.utilisation - 0.75) < 1e-9, "three seconds in four: %.9f",
		m.utilisation);
	ok(c.fragments == P && c.h == H && c.tau == 3, "the run's settings");
	ok(c.values == 4000 && c.largest == 1.5, "the model: %.0f values",
		c.values);
	ok(c.up == 16 && c.down == 32, "bits: %.1f up, %.1f down", c.up,
		c.down);
	measure(&tape, 0.5, &m, &c, &e);
	ok(fabs(m.utilisation - 0.375) < 1e-9 && c.step == 0.5,
		"a step's time that is told: %.9f", m.utilisation);
	dl_buf_clear(&tape);
	start(&tape);
	rc = measure(&tape, 0, &m, &c, &e);
	ok(rc == DL_DATA, "no step: %s", e.text);
	dl_buf_clear(&tape);
	dl_buf_str(&tape, "{}\n");
	rc = measure(&tape, 0, &m, &c, &e);
	ok(rc == DL_DATA, "no tape: %s", e.text);
	dl_buf_free(&tape);
	return done_testing();
}
