#include "base/cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[DL_CPU_LEVELS] = {"baseline", "avx2", "avx512"};

static enum dl_cpu detect(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f") &&
		__builtin_cpu_supports("avx512bw") &&
		__builtin_cpu_supports("avx512dq") &&
		__builtin_cpu_supports("avx512vl"))
		return DL_CPU_AVX512;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return DL_CPU_AVX2;
#endif
	return DL_CPU_BASELINE;
}

static enum dl_cpu cap(void)
{
	const char *s = getenv("DL_CPU");
	int level = DL_CPU_LEVELS - 1;

	if (!s || !*s)
		return (enum dl_cpu)level;
	while (level > DL_CPU_BASELINE && strcmp(names[level], s))
		level--;
	return (enum dl_cpu)level;
}

enum dl_cpu dl_cpu_level(void)
{
	/* Threads that find out at once find the same. */
	static atomic_int known = -1;
	int level = atomic_load_explicit(&known, memory_order_relaxed);

	if (level < 0) {
		enum dl_cpu has = detect(), most = cap();

		level = has < most ? has : most;
		atomic_store_explicit(&known, level, memory_order_relaxed);
	}
	return (enum dl_cpu)level;
}

const char *dl_cpu_name(enum dl_cpu level)
{
	return names[level];
}
