#include "cmd/sim-fleet-table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/num.h"

enum { FIELDS = 11 };

/* A column: its name, its form, and the name of its standard error's. */
static const struct {
	const char *name, *format, *error;
} fields[FIELDS] = {
	{"steps", "%.0f", NULL},
	{"clock", "%.0f", NULL},
	{"participation%", "%.1f", "participation_error"},
	{"effective_h", "%.2f", "effective_h_error"},
	{"late", "%.0f", NULL},
	{"wasted%", "%.1f", NULL},
	{"overwritten%", "%.1f", NULL},
	{"lost%", "%.1f", NULL},
	{"goodput%", "%.1f", "goodput_error"},
	{"utilisation%", "%.1f", "utilisation_error"},
	{"seconds", "%.1f", "seconds_error"},
};

struct fleet_line {
	double sum[FIELDS], squares[FIELDS];
};

static double share(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

static void fill(double *field, const struct dl_fleet_line *l, int64_t time_ns)
{
	const struct dl_account *a = &l->account;
	double own = (double)a->own, busy = (double)l->busy_ns;
	double merged = (double)a->merged;
	const double value[FIELDS] = {
		(double)l->steps,
		(double)l->clock,
		100 * share((double)l->reported, (double)l->rounds),
		share(merged, (double)a->merged_pushes),
		(double)a->late_pushes,
		100 * share((double)(a->late + a->refused), own),
		100 * share((double)a->overwritten, own),
		100 * share((double)(a->lost + a->unsent + a->out), own),
		100 * share(busy * share(merged, own), (double)l->allocated_ns),
		100 * share(busy, (double)l->up_ns),
		(double)time_ns / DL_SECOND,
	};

	for (int i = 0; i < FIELDS; i++)
		field[i] = value[i];
}

static void add(struct fleet_line *to, const double *field)
{
	for (int i = 0; i < FIELDS; i++) {
		to->sum[i] += field[i];
		to->squares[i] += field[i] * field[i];
	}
}

void fleet_table_add(struct fleet_table *t, const struct dl_fleet_config *c,
	const struct dl_fleet_result *r)
{
	double field[FIELDS];

	if (!t->runs++) {
		t->learners = c->learners;
		t->line = dl_alloc_array(
			(size_t)c->learners + 1, sizeof *t->line);
	}
	for (uint32_t m = 0; m < c->learners; m++) {
		fill(field, &r->learner[m], r->learner[m].allocated_ns);
		add(&t->line[m], field);
	}
	fill(field, &r->total, r->ended_ns);
	add(&t->line[c->learners], field);
}

static double error_of(const struct fleet_line *l, int i, uint32_t n)
{
	double mean = l->sum[i] / n, variance = l->squares[i] / n - mean * mean;

	return n > 1 && variance > 0 ? sqrt(variance / (n - 1)) : 0;
}

static void print_line(
	struct fleet_table *t, const char *name, const struct fleet_line *l)
{
	cmd_table_word(&t->table, name);
	for (int i = 0; i < FIELDS; i++)
		cmd_table_number(
			&t->table, fields[i].format, l->sum[i] / t->runs);
	for (int i = 0; i < FIELDS; i++)
		if (fields[i].error)
			cmd_table_number(
				&t->table, "%.3f", error_of(l, i, t->runs));
}

void fleet_table_print(struct fleet_table *t)
{
	const char *column[2 * FIELDS + 2] = {"learner"};
	char name[24];
	size_t n = 1;

	for (int i = 0; i < FIELDS; i++)
		column[n++] = fields[i].name;
	for (int i = 0; i < FIELDS; i++)
		if (fields[i].error)
			column[n++] = fields[i].error;
	t->table.column = column;
	for (uint32_t m = 0; m < t->learners; m++) {
		snprintf(name, sizeof name, "%u", m);
		print_line(t, name, &t->line[m]);
	}
	print_line(t, "total", &t->line[t->learners]);
	cmd_table_print(&t->table);
	free(t->line);
	*t = (struct fleet_table){0};
}
