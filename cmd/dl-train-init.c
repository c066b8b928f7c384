#include <stdlib.h>

#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/dl-train.h"
#include "train/store.h"

enum { VOCAB = 256, TIED };

static const struct option options[] = {
	{"layers", required_argument, NULL, 'L'},
	{"heads", required_argument, NULL, 'H'},
	{"kv-heads", required_argument, NULL, 'K'},
	{"width", required_argument, NULL, 'd'},
	{"inner", required_argument, NULL, 'F'},
	{"context", required_argument, NULL, 'c'},
	{"seed", required_argument, NULL, 's'},
	{"vocab", required_argument, NULL, VOCAB},
	{"tied", no_argument, NULL, TIED},
	{"force", no_argument, NULL, 'f'},
	CMD_LONG,
	{NULL, 0, NULL, 0},
};

static size_t number(const char *option)
{
	return cmd_u64(option, optarg, 1, 1 << 20);
}

static void read_options(
	int argc, char **argv, struct dl_config *c, uint64_t *seed, int *force)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "L:H:K:d:F:c:s:f" CMD_SHORT,
			options, NULL)) != -1)
		switch (opt) {
		case 'L':
			c->layers = number("--layers");
			break;
		case 'H':
			c->heads = number("--heads");
			break;
		case 'K':
			c->kv_heads = number("--kv-heads");
			break;
		case 'd':
			c->width = number("--width");
			break;
		case 'F':
			c->inner = number("--inner");
			break;
		case 'c':
			c->context = number("--context");
			break;
		case 's':
			*seed = cmd_u64("--seed", optarg, 0, UINT64_MAX);
			break;
		case VOCAB:
			c->vocab = number("--vocab");
			break;
		case TIED:
			c->tied = 1;
			break;
		case 'f':
			*force = 1;
			break;
		default:
			cmd_common_option(opt);
		}
}

int train_init(int argc, char **argv)
{
	struct dl_config c = {.layers = 4,
		.heads = 4,
		.width = 128,
		.vocab = 256,
		.context = 64,
		.eps = 1e-5,
		.theta = 10000};
	uint64_t seed = 0;
	struct dl_llama m;
	struct dl_err e;
	float *values;
	int rc, force = 0;

	read_options(argc, argv, &c, &seed, &force);
	if (argc - optind != 1)
		cmd_usage("init: one folder");
	if (!c.kv_heads)
		c.kv_heads = c.heads;
	if (!c.inner) /* as many weights as four widths and no gate have */
		c.inner = (c.width * 8 / 3 + 7) / 8 * 8;
	if (dl_config_check(&c, &e) ||
		(!force && dl_store_refuse_model(argv[optind], &e)))
		return cmd_fail(&e);
	dl_llama_init(&m, &c);
	values = dl_big_alloc(m.size * sizeof(float));
	dl_llama_randomise(&m, seed, values);
	rc = dl_store_write_model(&m, argv[optind], values, &e);
	if (!rc)
		cmd_note("%s: %zu parameters", argv[optind], m.size);
	dl_big_free(values, m.size * sizeof(float));
	dl_llama_release(&m);
	return rc ? cmd_fail(&e) : 0;
}
