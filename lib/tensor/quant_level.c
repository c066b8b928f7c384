#include "base/cpu.h"
#include "tensor/quant_kernels.h"

/* DL_QUANT_LEVELS says that the wider tables are there. */
const struct dl_quant_kernels *dl_quant_kernels(void)
{
	static const struct dl_quant_kernels *const table[DL_CPU_LEVELS] = {
		[DL_CPU_BASELINE] = &dl_quant_kernels_baseline,
#ifdef DL_QUANT_LEVELS
		[DL_CPU_AVX2] = &dl_quant_kernels_avx2,
		[DL_CPU_AVX512] = &dl_quant_kernels_avx512,
#endif
	};
	const struct dl_quant_kernels *k = table[dl_cpu_level()];

	return k ? k : table[DL_CPU_BASELINE];
}
