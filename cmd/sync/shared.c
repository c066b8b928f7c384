#include "cmd/sync/shared.h"

#include <stdlib.h>

struct shared *shared_new(struct shelf *shelf, size_t bytes)
{
	struct shared *s = dl_alloc(sizeof *s);

	s->shelf = shelf;
	s->bytes = bytes;
	s->data = shelf_take_bytes(shelf, bytes);
	return s;
}

static void free_unread(struct shared *s)
{
	if (s->readers || !s->old)
		return;
	shelf_give_bytes(s->shelf, s->data, s->bytes);
	free(s);
}

void shared_retire(struct shared *s)
{
	if (!s)
		return;
	s->old = 1;
	free_unread(s);
}

struct shared *shared_read(struct shared *s)
{
	s->readers++;
	return s;
}

void shared_done(struct shared *s)
{
	s->readers--;
	free_unread(s);
}
