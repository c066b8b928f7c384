#include "base/cpu.h"
#include "train/kernels.h"

const struct dl_train_kernels *dl_train_kernels(void)
{
#ifdef __x86_64__
	static const struct dl_train_kernels *const levels[DL_CPU_LEVELS] = {
		[DL_CPU_BASELINE] = &dl_train_kernels_baseline,
		[DL_CPU_AVX2] = &dl_train_kernels_avx2,
		[DL_CPU_AVX512] = &dl_train_kernels_avx512,
	};

	return levels[dl_cpu_level()];
#else
	return &dl_train_kernels_baseline;
#endif
}
