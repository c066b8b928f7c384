#include "state/store_pin.h"

int dl_pins_name(const struct dl_pin *first, uint32_t p, struct dl_version made)
{
	for (const struct dl_pin *pin = first; pin; pin = pin->next)
		if (!dl_version_cmp(pin->head.files[p].made, made))
			return 1;
	return 0;
}

const struct dl_store_run *dl_pin_run(const struct dl_pin *pin)
{
	return &pin->head.run;
}

const struct dl_sync_saved *dl_pin_saved(const struct dl_pin *pin)
{
	return &pin->head.saved;
}
