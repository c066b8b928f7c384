/* config.json: what a Llama model's shape needs of it, and no other maths. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "train/config.h"

enum { FILE_LIMIT = 1 << 20 };

enum kind { SIZE, NUMBER, FLAG, WORD, NOTHING };

/* The keys that matter: where a value goes, or which one value is allowed. */
struct key {
	const char *name;
	enum kind kind;
	void *out;	  /* size_t, double or int */
	const char *word; /* of WORD: the only one that we can do */
	int seen;
};

static int read_value(struct dl_json *j, struct key *k, struct dl_err *e)
{
	enum dl_json_token t = dl_json_next(j);
	int flag = t == DL_JSON_TRUE;
	uint64_t n;

	if (t == DL_JSON_BAD)
		return e->code;
	if (k->seen++)
		return dl_fail(e, DL_DATA, "%s comes twice", k->name);
	if (k->kind == SIZE && t == DL_JSON_NUMBER) {
		if (dl_json_u64(j, &n))
			return dl_at(e, "%s", k->name);
		*(size_t *)k->out = n;
		return 0;
	}
	if (k->kind == NUMBER && t == DL_JSON_NUMBER)
		return dl_json_double(j, k->out) ? dl_at(e, "%s", k->name) : 0;
	if (k->kind == FLAG && (flag || t == DL_JSON_FALSE)) {
		if (!k->out && flag)
			return dl_fail(e, DL_DATA,
				"%s is true, which is not supported", k->name);
		if (k->out)
			*(int *)k->out = flag;
		return 0;
	}
	if (k->kind == WORD && t == DL_JSON_STRING && dl_json_is(j, k->word))
		return 0;
	if (t == DL_JSON_NULL && (k->kind == NOTHING || k->kind == SIZE))
		return 0;
	if (k->kind == WORD)
		return dl_fail(
			e, DL_DATA, "%s is not \"%s\"", k->name, k->word);
	return dl_fail(
		e, DL_DATA, "%s has a value that is not supported", k->name);
}

static int read_object(
	struct dl_json *j, struct key *keys, size_t n, struct dl_err *e)
{
	enum dl_json_token t = dl_json_next(j);
	int rc;

	if (t != DL_JSON_OBJECT)
		return t == DL_JSON_BAD
			       ? e->code
			       : dl_fail(e, DL_DATA, "not a JSON object");
	while ((t = dl_json_next(j)) == DL_JSON_KEY) {
		size_t i = 0;

		while (i < n && !dl_json_is(j, keys[i].name))
			i++;
		rc = i < n ? read_value(j, &keys[i], e)
			   : dl_json_skip(j, dl_json_next(j));
		if (rc)
			return rc;
	}
	if (t == DL_JSON_OBJECT_END)
		t = dl_json_next(j);
	return t == DL_JSON_END ? 0 : e->code;
}

static int parse(
	struct dl_config *c, const void *text, size_t n, struct dl_err *e)
{
	size_t head = 0;
	struct key keys[] = {
		{"num_hidden_layers", SIZE, &c->layers, NULL, 0},
		{"num_attention_heads", SIZE, &c->heads, NULL, 0},
		{"num_key_value_heads", SIZE, &c->kv_heads, NULL, 0},
		{"hidden_size", SIZE, &c->width, NULL, 0},
		{"intermediate_size", SIZE, &c->inner, NULL, 0},
		{"vocab_size", SIZE, &c->vocab, NULL, 0},
		{"max_position_embeddings", SIZE, &c->context, NULL, 0},
		{"head_dim", SIZE, &head, NULL, 0},
		{"rms_norm_eps", NUMBER, &c->eps, NULL, 0},
		{"rope_theta", NUMBER, &c->theta, NULL, 0},
		{"tie_word_embeddings", FLAG, &c->tied, NULL, 0},
		{"attention_bias", FLAG, NULL, NULL, 0},
		{"mlp_bias", FLAG, NULL, NULL, 0},
		{"rope_scaling", NOTHING, NULL, NULL, 0},
		{"model_type", WORD, NULL, "llama", 0},
		{"hidden_act", WORD, NULL, "silu", 0},
	};
	struct dl_json j;
	int rc;

	dl_json_init(&j, text, n, e);
	rc = read_object(&j, keys, sizeof(keys) / sizeof(*keys), e);
	dl_json_release(&j);
	if (!c->kv_heads)
		c->kv_heads = c->heads;
	if (!rc)
		rc = dl_config_check(c, e);
	if (!rc && head && head != c->width / c->heads)
		rc = dl_fail(e, DL_DATA,
			"head_dim is %zu, not hidden_size over "
			"num_attention_heads",
			head);
	return rc;
}

int dl_config_parse(
	struct dl_config *c, const void *text, size_t n, struct dl_err *e)
{
	struct dl_err local;

	/* What Hugging Face assumes of keys that are not there. */
	*c = (struct dl_config){.eps = 1e-6, .theta = 10000};
	return parse(c, text, n, e ? e : &local);
}

int dl_config_read(struct dl_config *c, const char *path, struct dl_err *e)
{
	struct dl_buf text = DL_BUF_INIT;
	int rc = dl_read_file(path, FILE_LIMIT, &text, e);

	if (!rc && (rc = dl_config_parse(c, text.data, text.len, e)))
		dl_at(e, "%s", path);
	dl_buf_free(&text);
	return rc;
}

/* The shorter spelling when it means the same number. */
static void write_double(struct dl_buf *out, const char *name, double x)
{
	char text[32];

	snprintf(text, sizeof(text), "%g", x);
	if (strtod(text, NULL) != x)
		snprintf(text, sizeof(text), "%.17g", x);
	dl_buf_printf(out, "  \"%s\": %s,\n", name, text);
}

void dl_config_write(const struct dl_config *c, struct dl_buf *out)
{
	dl_buf_str(out,
		"{\n  \"architectures\": [\"LlamaForCausalLM\"],\n"
		"  \"model_type\": \"llama\",\n  \"hidden_act\": \"silu\",\n");
	dl_buf_printf(out, "  \"num_hidden_layers\": %zu,\n", c->layers);
	dl_buf_printf(out, "  \"num_attention_heads\": %zu,\n", c->heads);
	dl_buf_printf(out, "  \"num_key_value_heads\": %zu,\n", c->kv_heads);
	dl_buf_printf(out, "  \"hidden_size\": %zu,\n", c->width);
	dl_buf_printf(out, "  \"intermediate_size\": %zu,\n", c->inner);
	dl_buf_printf(out, "  \"vocab_size\": %zu,\n", c->vocab);
	dl_buf_printf(out, "  \"max_position_embeddings\": %zu,\n", c->context);
	write_double(out, "rms_norm_eps", c->eps);
	write_double(out, "rope_theta", c->theta);
	dl_buf_printf(out, "  \"tie_word_embeddings\": %s,\n",
		c->tied ? "true" : "false");
	dl_buf_str(out, "  \"torch_dtype\": \"float32\"\n}\n");
}
