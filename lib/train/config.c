#include "train/config.h"

enum {
	MAX_LAYERS = 4096,
	MAX_WIDTH = 1 << 20,
	MAX_VOCAB = 1 << 16,
	MAX_CONTEXT = 1 << 20,
};

int dl_config_check(const struct dl_config *c, struct dl_err *e)
{
	const struct {
		const char *name;
		size_t value, max;
	} sizes[] = {
		{"num_hidden_layers", c->layers, MAX_LAYERS},
		{"hidden_size", c->width, MAX_WIDTH},
		{"intermediate_size", c->inner, MAX_WIDTH},
		{"num_attention_heads", c->heads, MAX_WIDTH},
		{"num_key_value_heads", c->kv_heads, MAX_WIDTH},
		{"vocab_size", c->vocab, MAX_VOCAB},
		{"max_position_embeddings", c->context, MAX_CONTEXT},
	};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		if (sizes[i].value < 1 || sizes[i].value > sizes[i].max)
			return dl_fail(e, DL_DATA, "%s is %zu, not 1 to %zu",
				sizes[i].name, sizes[i].value, sizes[i].max);
	if (c->width % (2 * c->heads))
		return dl_fail(e, DL_DATA,
			"hidden_size %zu is not a multiple of twice the "
			"%zu heads",
			c->width, c->heads);
	if (c->heads % c->kv_heads)
		return dl_fail(e, DL_DATA,
			"%zu heads do not share %zu key and value heads evenly",
			c->heads, c->kv_heads);
	if (!(c->eps > 0) || !(c->eps < 1))
		return dl_fail(e, DL_DATA, "rms_norm_eps is %g, not in (0, 1)",
			c->eps);
	if (!(c->theta > 0) || !(c->theta < 1e12))
		return dl_fail(e, DL_DATA, "rope_theta is %g, not in (0, 1e12)",
			c->theta);
	return 0;
}
