/*
 * Pins of a store (store.h), for those who keep the store and those who pack
 * what a pin names.
 */
#ifndef DL_STATE_STORE_PIN_H
#define DL_STATE_STORE_PIN_H

#include <stdatomic.h>

#include "state/store_folder.h"

struct dl_pin {
	struct dl_pin *next;
	char *folder;
	struct dl_head head;
	atomic_int abandoned; /* nobody wants what is packed of it */
};

/* Does one of these pins name the files of fragment p made at that version? */
int dl_pins_name(
	const struct dl_pin *first, uint32_t p, struct dl_version made);

#endif
