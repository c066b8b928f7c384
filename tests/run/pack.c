/*
 * pack STORE FILE: the checkpoint of a store that nobody owns, as made now.
 */
#include <stdio.h>

#include <sodium.h>

#include "base/num.h"
#include "state/checkpoint.h"

int main(int argc, char **argv)
{
	struct dl_store *s;
	struct dl_pin *pin;
	struct dl_err e;
	int code;

	if (argc != 3 || sodium_init() < 0)
		return DL_USAGE;
	code = dl_store_open(&s, argv[1], DL_STORE_OWN, &e);
	if (!code) {
		pin = dl_store_pin(s);
		code = dl_checkpoint_write(pin, dl_wall(), argv[2], &e);
		dl_store_unpin(s, pin);
		dl_store_close(s);
	}
	if (code)
		fprintf(stderr, "pack: %s\n", e.text);
	return code;
}
