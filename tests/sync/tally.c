#include "tally.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

static struct tally here;	     /* allocations */
static volatile struct tally *there; /* shared with the tracer: the rest */

void *__wrap_malloc(size_t n)
{
	here.allocations++;
	here.kept++;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	here.allocations++;
	here.kept++;
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	here.allocations++;
	here.kept += !p;
	return __real_realloc(p, n);
}

void __wrap_free(void *p)
{
	here.kept -= p != NULL;
	__real_free(p);
}

/* To the tracer: begin, or end, to count. */
static void turn(void)
{
	raise(SIGSTOP);
}

void tally_begin(void)
{
	if (there)
		turn();
	here = (struct tally){0};
}

void tally_end(struct tally *out)
{
	*out = here;
	if (!there)
		return;
	turn();
	out->calls = there->calls;
	out->written = there->written;
}

static int writes(uint64_t call)
{
	return call == SYS_write || call == SYS_writev || call == SYS_pwrite64;
}

/* A stop at a call or behind it. */
static void count(pid_t child, uint64_t *call)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) <= 0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		*call = info.entry.nr;
		there->calls++;
	} else if (writes(*call) && info.exit.rval > 0) {
		there->written += (uint64_t)info.exit.rval;
	}
}

static int follow(pid_t child)
{
	int status, counting = 0;
	uint64_t call = 0;

	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		int signal = WSTOPSIG(status);

		if (signal == SIGSTOP) {
			counting = !counting;
			if (counting)
				there->calls = there->written = 0;
			signal = 0;
		} else if (signal == (SIGTRAP | 0x80)) {
			count(child, &call);
			signal = 0;
		}
		if (ptrace(counting ? PTRACE_SYSCALL : PTRACE_CONT, child, NULL,
			    signal))
			return 99;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

/* The child stops before its first stretch, so that the tracer can say how. */
static void be_traced(int (*test)(int traced))
{
	int status, traced = !ptrace(PTRACE_TRACEME, 0, NULL, NULL);

	if (traced)
		raise(SIGSTOP);
	else
		there = NULL;
	status = test(traced);
	fflush(stdout);
	_exit(status);
}

int tally_run(int (*test)(int traced))
{
	void *shared = mmap(NULL, sizeof *there, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t child;

	if (shared == MAP_FAILED)
		return 99;
	there = shared;
	child = fork();
	if (!child)
		be_traced(test);
	if (waitpid(child, &status, WUNTRACED) != child)
		return 99;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (ptrace(PTRACE_SETOPTIONS, child, NULL,
		    PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) ||
		ptrace(PTRACE_CONT, child, NULL, NULL))
		return 99;
	return follow(child);
}
