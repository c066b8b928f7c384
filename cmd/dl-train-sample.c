#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/dl-train.h"
#include "train/blas.h"
#include "train/sample.h"
#include "train/store.h"

enum { TEMPERATURE = 256, CONFIG };

static const struct option options[] = {
	{"tokens", required_argument, NULL, 'n'},
	{"prompt", required_argument, NULL, 'p'},
	{"seed", required_argument, NULL, 's'},
	{"temperature", required_argument, NULL, TEMPERATURE},
	{"config", required_argument, NULL, CONFIG},
	CMD_LONG,
	{NULL, 0, NULL, 0},
};

struct choice {
	size_t tokens;
	const char *prompt;
	double temperature;
	uint64_t seed;
};

/* The prompt's bytes as ids with room for more; NULL when the model does not
 * know one of them. */
static uint16_t *start(const struct dl_llama *m, const struct choice *o)
{
	size_t n = strlen(o->prompt);
	uint16_t *ids = dl_alloc_array(n + o->tokens, sizeof(*ids));

	for (size_t i = 0; i < n; i++) {
		ids[i] = (unsigned char)o->prompt[i];
		if (ids[i] >= m->config.vocab) {
			free(ids);
			return NULL;
		}
	}
	return ids;
}

static int write_text(
	const struct dl_llama *m, const float *values, const struct choice *o)
{
	struct dl_rng r = {dl_rng_key(o->seed, 0), 0};
	uint16_t *ids = start(m, o);
	size_t n = strlen(o->prompt);
	float *logits;
	struct dl_pass *p;

	if (!ids) {
		cmd_warn("the prompt has bytes beyond the vocabulary");
		return DL_DATA;
	}
	p = dl_pass_new(m, 1);
	logits = dl_alloc_array(m->config.vocab, sizeof(*logits));
	fputs(o->prompt, stdout);
	for (size_t end = n + o->tokens; n < end; n++) {
		ids[n] = dl_sample(
			p, m, values, ids, n, o->temperature, &r, logits);
		putchar(ids[n]);
	}
	putchar('\n');
	free(logits);
	free(ids);
	dl_pass_free(p);
	return cmd_flush();
}

static int sample(const char *model, const char *config, const struct choice *o)
{
	struct dl_config c;
	struct dl_llama m;
	struct dl_err e;
	float *values;
	int rc;

	if (dl_blas_load(&e) || dl_store_read_config(&c, config, model, &e))
		return cmd_fail(&e);
	if (c.vocab > 256) {
		cmd_warn("%s: its tokens are not bytes", model);
		return DL_DATA;
	}
	dl_llama_init(&m, &c);
	values = dl_big_alloc(m.size * sizeof(float));
	rc = dl_store_read_model(&m, model, values, &e)
		     ? cmd_fail(&e)
		     : write_text(&m, values, o);
	dl_big_free(values, m.size * sizeof(float));
	dl_llama_release(&m);
	return rc;
}

int train_sample(int argc, char **argv)
{
	struct choice o = {200, "\n", 0.8, 0};
	const char *config = NULL;
	int opt;

	while ((opt = getopt_long(
			argc, argv, "n:p:s:" CMD_SHORT, options, NULL)) != -1)
		switch (opt) {
		case 'n':
			o.tokens = cmd_u64("--tokens", optarg, 0, 1 << 30);
			break;
		case 'p':
			o.prompt = optarg;
			break;
		case 's':
			o.seed = cmd_u64("--seed", optarg, 0, UINT64_MAX);
			break;
		case TEMPERATURE:
			o.temperature =
				cmd_double("--temperature", optarg, 0, 100);
			break;
		case CONFIG:
			config = optarg;
			break;
		default:
			cmd_common_option(opt);
		}
	if (argc - optind != 1)
		cmd_usage("sample: one model");
	if (!*o.prompt)
		cmd_usage("--prompt: the text cannot start from nothing");
	return sample(argv[optind], config, &o);
}
