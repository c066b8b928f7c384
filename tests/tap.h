/*
 * What C tests print: TAP, one line a check.
 */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int tap_count, tap_failed;

/* One check; returns cond so that a test can print more when it fails. */
__attribute__((format(printf, 2, 3), unused)) static int ok(int cond,
	const char *fmt, ...)
{
	va_list ap;

	printf("%sok %d - ", cond ? "" : "not ", ++tap_count);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	tap_failed += !cond;
	return cond;
}

__attribute__((format(printf, 1, 2), unused)) static void skip(
	const char *fmt, ...)
{
	va_list ap;

	printf("ok %d # SKIP ", ++tap_count);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* The end of main: the plan and the status. */
__attribute__((unused)) static int done_testing(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed ? 1 : 0;
}

#endif
