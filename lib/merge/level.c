#include "merge/kernels.h"

#include "base/cpu.h"

const struct dl_kernels *dl_kernels(void)
{
	static const struct dl_kernels *const table[DL_CPU_LEVELS] = {
		[DL_CPU_BASELINE] = &dl_kernels_baseline,
#ifdef __x86_64__
		[DL_CPU_AVX2] = &dl_kernels_avx2,
		[DL_CPU_AVX512] = &dl_kernels_avx512,
#endif
	};

	return table[dl_cpu_level()];
}

/* Halves are added until one is left. */
double dl_lanes_total(double lane[DL_LANES])
{
	for (int half = DL_LANES / 2; half; half /= 2)
		for (int j = 0; j < half; j++)
			lane[j] += lane[j + half];
	return lane[0];
}
