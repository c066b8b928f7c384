#include "cmd/link.h"

#include "cmd/cmd.h"
#include "link/conn.h"

enum { BUFFERS_MIN = 4096, BUFFERS_MAX = 1 << 30 };

static int read_buffers(const char *arg)
{
	uint64_t bytes = cmd_size("--buffers", arg);

	if (bytes < BUFFERS_MIN || bytes > BUFFERS_MAX)
		cmd_usage("--buffers %s: not a size from 4Ki to 1Gi", arg);
	return (int)bytes;
}

int link_option(struct dl_tcp *t, int opt)
{
	struct dl_err e;

	if (opt == LINK_BUFFERS)
		t->buffers = read_buffers(optarg);
	else if (opt == LINK_CONGESTION)
		t->congestion = optarg;
	else
		return 0;
	if (dl_tcp_check(t, &e))
		cmd_usage("%s", e.text);
	return 1;
}

void link_set_up(struct dl_address *a, size_t n, const struct dl_tcp *t)
{
	size_t i, found = 0;

	for (i = 0; i < n; i++)
		if (a[i].kind == DL_LINK_TCP) {
			a[i].tcp = *t;
			found++;
		}
	if (!found && t->buffers)
		cmd_usage("--buffers: for tcp only");
	if (!found && t->congestion)
		cmd_usage("--congestion: for tcp only");
}

void link_insecure(enum dl_insecure *allowed)
{
	if (*allowed != DL_INSECURE_ANYWHERE)
		++*allowed;
}

void link_allow(const struct dl_address *a, size_t n, enum dl_insecure allowed)
{
	size_t i, found = 0;

	for (i = 0; i < n; i++)
		found += a[i].kind == DL_LINK_TCP && !a[i].keyed;
	if (!found && allowed != DL_INSECURE_NO)
		cmd_usage("--insecure: for plain tcp only");
}

static uint64_t read_window(const char *arg)
{
	uint64_t bytes = cmd_size("--window", arg);

	if (bytes < DL_WINDOW_MIN || bytes > DL_WINDOW_MAX)
		cmd_usage("--window %s: not a size from 1Mi to 1Gi", arg);
	return bytes;
}

int data_option(struct data_options *d, int opt)
{
	if (opt == DATA_RATE)
		d->rate = cmd_rate("--rate", optarg);
	else if (opt == DATA_STREAMS)
		d->streams = cmd_u64("--streams", optarg, 1, DL_STREAMS_MAX);
	else if (opt == DATA_WINDOW)
		d->window = read_window(optarg);
	else
		return 0;
	return 1;
}

void data_check(struct data_options *d)
{
	if (d->window && d->streams < 2)
		cmd_usage("--window: for several --streams only");
	if (!d->window)
		d->window = DL_WINDOW;
}
