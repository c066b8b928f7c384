/*
 * PyTorch beside this process, training gpt.py's model: tuned as its users tune
 * it on CPUs, by memory that is not given back and threads that wait asleep.
 */
#ifndef TESTS_BENCH_GPT_H
#define TESTS_BENCH_GPT_H

struct gpt;

/* NULL where Debian's python3-torch is not. Free with gpt_free. */
struct gpt *gpt_new(unsigned threads);
void gpt_free(struct gpt *g); /* NULL is fine */

double gpt_memory(const struct gpt *g); /* the most it held, in bytes */
double gpt_step(struct gpt *g);		/* one step; how many seconds it took */

#endif
