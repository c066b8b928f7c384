#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

int dl_library_load(const char *library, const char *const *name, size_t n,
	void *table, struct dl_err *e)
{
	void *handle = dlopen(library, RTLD_LAZY), *function = handle;

	for (size_t i = 0; function && i < n; i++) {
		function = dlsym(handle, name[i]);
		memcpy((char *)table + i * sizeof function, &function,
			sizeof function);
	}
	return function ? 0 : dl_fail(e, DL_UNAVAILABLE, "%s", dlerror());
}
