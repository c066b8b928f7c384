#include "tests/link/pair.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "tensor/record.h"

void pair_sockets(int fd[2], int buffer)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd))
		abort();
	for (int i = 0; i < 2 && buffer; i++)
		setsockopt(
			fd[i], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
}

float pair_value(uint64_t seq, size_t i)
{
	return (float)(seq * 1000 + i % 997);
}

size_t pair_wrong(const float *values, size_t n, uint64_t seq)
{
	size_t wrong = 0;

	for (size_t i = 0; i < n; i++)
		wrong += values[i] != pair_value(seq, i);
	return wrong;
}

void pair_send_values(struct dl_conn *c, uint64_t key, uint64_t seq,
	float *values, size_t n, void (*done)(void *ctx, int sent), void *ctx)
{
	const struct dl_message m = {.kind = DL_MSG_PUSH,
		.fragment = (uint32_t)key,
		.seq = seq,
		.steps = 1,
		.tokens = 1,
		.codec = "f32"};
	struct dl_writer w = DL_WRITER_INIT;
	struct dl_buf head = DL_BUF_INIT;
	uint64_t shape = n;

	for (size_t i = 0; i < n; i++)
		values[i] = pair_value(seq, i);
	dl_message_meta(&m, &w);
	dl_writer_tensor(&w, "x", 1, DL_F32, 1, &shape);
	dl_writer_finish(&w, &head, NULL);
	dl_writer_release(&w);
	dl_conn_send_data(c, key, &head, values, n * sizeof *values, done, ctx);
}

void pair_send_end(struct dl_conn *c, uint64_t step)
{
	const struct dl_message m = {.kind = DL_MSG_END, .step = step};

	dl_conn_send(c, &m);
}
