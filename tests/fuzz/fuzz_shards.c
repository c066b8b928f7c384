/*
 * Any text as the index of a sharded model: refused with 65 and a text, or a
 * list in order, each tensor once, of files beside the index.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "tensor/shards.h"

static void check_entry(const struct dl_shards *s, size_t i)
{
	const struct dl_shards_entry *entry = &s->entry[i];

	if (entry->file >= s->files ||
		memchr(entry->shard.s, '/', entry->shard.n) ||
		dl_string_compare(&entry->shard, &s->file[entry->file]) != 0)
		abort();
	if (strlen(entry->shard.s) != entry->shard.n ||
		strcmp(entry->shard.s, "..") == 0)
		abort();
	if (!i)
		return;
	if (entry[-1].file > entry->file ||
		(entry[-1].file == entry->file &&
			dl_string_compare(&entry[-1].tensor, &entry->tensor) >=
				0))
		abort();
	for (size_t k = 0; k < i; k++)
		if (!dl_string_compare(&s->entry[k].tensor, &entry->tensor))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dl_err e = {0};
	struct dl_shards s;
	int code = dl_shards_parse(&s, data, n, &e);

	if (code && (code != DL_DATA || e.code != DL_DATA || !e.text[0]))
		abort();
	for (size_t i = 0; !code && i < s.entries; i++)
		check_entry(&s, i);
	dl_shards_release(&s);
	return 0;
}
