/*
 * Lists on dl-sim's command lines, "A,B,...".
 */
#ifndef CMD_SIM_LIST_H
#define CMD_SIM_LIST_H

#include <stddef.h>

enum { SIM_LIST_MOST = 64 };

struct sim_list {
	double item[SIM_LIST_MOST];
	size_t n;
};

/* Reads the argument of that option in place of what l holds; item reads one,
 * and exits 64 when it is bad. */
void sim_list(struct sim_list *l, const char *option, const char *arg,
	double (*item)(const char *option, const char *arg));

/* Such items: a whole number from 1 to 100,000, such as 1k. */
double sim_count(const char *option, const char *arg);

#endif
