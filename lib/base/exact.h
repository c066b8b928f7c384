/*
 * The elementary functions that random draws need, in plain arithmetic: they
 * have the same bits on every machine, which libm's have not. Errors stay
 * within a few units of the last place.
 */
#ifndef DL_BASE_EXACT_H
#define DL_BASE_EXACT_H

double dl_exact_log(double x);	    /* x normal and above 0 */
double dl_exact_exp(double x);	    /* |x| at most 700 */
double dl_exact_cos_turn(double v); /* cos(2 pi v), v in [0, 1] */

#endif
