/*
 * make_model SEED FILE: a valid model that few tools would write: all dtypes,
 * empty tensors, scalars, odd names, data in any order at any alignment.
 * make_model SEED FOLDER SHARDS: the same as a sharded set with an index.
 * make_model SEED FILE llama: a small language model with likely values, F32;
 * other seeds give other values under the same names and shapes.
 * make_model SEED FILE many N: N tensors of zeros (many.h).
 * make_model SEED FILE sparse BYTES: a language model of at least so many,
 * BF16, most of it holes; each tensor begins and ends with numbers, which
 * differ by seed.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "many.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "tensor/dtype.h"
#include "tensor/record.h"

static struct dl_rng rng;

static const struct {
	const char *s;
	size_t n;
} odd[] = {{"", 0}, {"../../etc/passwd", 16}, {"a\0b", 3}, {"\t\n\r\\\"", 5},
	{"# not a note", 12}, {"model.embed_tokens.weight", 25},
	{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x8d\x8e", 9}, {"a", 1}, {"a.scale", 7},
	{"__metadata", 10}, {"lm_head.weight", 14}, {"\x7f\x1b[31m", 6},
	{"x=y", 3}, {" ", 1}, {"[*]?", 4}};

enum { ODD = sizeof odd / sizeof *odd };

static uint64_t below(uint64_t n)
{
	return dl_rng_below(&rng, n);
}

static void put_name(struct dl_buf *out, size_t i)
{
	char name[64];

	if (i < ODD) {
		dl_json_quote(out, odd[i].s, odd[i].n);
		return;
	}
	snprintf(name, sizeof name, "model.layers.%zu.w", i - ODD);
	dl_json_quote(out, name, strlen(name));
}

/* A dtype and a shape whose bits fill whole bytes. */
static uint64_t put_type(struct dl_buf *out)
{
	enum dl_dtype t;
	uint64_t shape[4], bits;
	size_t rank;

	do {
		t = (enum dl_dtype)below(DL_DTYPES);
		rank = below(5);
		bits = dl_dtype_bits(t);
		for (size_t i = 0; i < rank; i++)
			bits *= shape[i] = below(20) ? 1 + below(9) : 0;
	} while (bits % 8);
	dl_buf_printf(out, "{\"dtype\":\"%s\",\"shape\":[", dl_dtype_name(t));
	for (size_t i = 0; i < rank; i++)
		dl_buf_printf(out, "%s%llu", i ? ", " : "",
			(unsigned long long)shape[i]);
	dl_buf_str(out, "]");
	return bits / 8;
}

/* Tensors first, first + step, ... below n, in a shuffled order. */
static void make(const char *path, size_t first, size_t step, size_t n)
{
	struct dl_buf json = DL_BUF_INIT, file = DL_BUF_INIT;
	unsigned char length[8];
	uint64_t at = 0;
	struct dl_err e;

	dl_buf_str(&json, "{ \"__metadata__\": {\"format\":\"pt\"}");
	for (size_t i = first; i < n; i += step) {
		uint64_t size;

		dl_buf_str(&json, ",\n ");
		put_name(&json, i);
		dl_buf_str(&json, ":");
		size = put_type(&json);
		dl_buf_printf(&json, ",\"data_offsets\":[%llu,%llu]}",
			(unsigned long long)at,
			(unsigned long long)(at + size));
		at += size;
	}
	dl_buf_printf(&json, "}%*s", (int)below(9), "");
	dl_put_le64(length, json.len);
	dl_buf_add(&file, length, sizeof length);
	dl_buf_add(&file, json.data, json.len);
	while (at--)
		dl_buf_byte(&file, (int)below(256));
	if (dl_write_file(path, file.data, file.len, &e)) {
		fprintf(stderr, "%s\n", e.text);
		exit(e.code);
	}
	dl_buf_free(&json);
	dl_buf_free(&file);
}

static void make_shards(const char *folder, size_t shards, size_t n)
{
	struct dl_buf index = DL_BUF_INIT;
	char *path = dl_sprintf("%s/model.safetensors.index.json", folder);
	struct dl_err e;

	dl_buf_str(&index, "{\"metadata\":{\"total_size\":1},\"weight_map\":{");
	for (size_t i = 0; i < n; i++) {
		dl_buf_str(&index, i ? "," : "");
		put_name(&index, i);
		dl_buf_printf(&index, ":\"s%zu.safetensors\"", i % shards);
	}
	dl_buf_str(&index, "}}");
	if (dl_make_folder(folder, &e)
		|| dl_write_file(path, index.data, index.len, &e)) {
		fprintf(stderr, "%s\n", e.text);
		exit(e.code);
	}
	for (size_t s = 0; s < shards; s++) {
		char *shard = dl_sprintf("%s/s%zu.safetensors", folder, s);

		make(shard, s, shards, n);
		free(shard);
	}
	free(path);
	dl_buf_free(&index);
}

static const struct {
	const char *name;
	unsigned rank;
	uint64_t shape[2];
} llama[] = {{"model.embed_tokens.weight", 2, {64, 8}},
	{"model.layers.0.mlp.down_proj.weight", 2, {8, 16}},
	{"model.layers.0.mlp.up_proj.weight", 2, {16, 8}},
	{"model.layers.0.norm.weight", 1, {8}},
	{"model.layers.1.mlp.down_proj.weight", 2, {8, 16}},
	{"model.layers.1.mlp.up_proj.weight", 2, {16, 8}},
	{"model.layers.1.norm.weight", 1, {8}},
	{"model.norm.weight", 1, {8}}, {"lm_head.weight", 2, {64, 8}}};

static void make_llama(const char *path)
{
	struct dl_writer w = DL_WRITER_INIT;
	struct dl_buf file = DL_BUF_INIT;
	size_t elements = 0;
	struct dl_err e;

	dl_writer_meta(&w, "format", "pt");
	for (size_t i = 0; i < sizeof llama / sizeof *llama; i++) {
		dl_writer_tensor(&w, llama[i].name, strlen(llama[i].name),
			DL_F32, llama[i].rank, llama[i].shape);
		elements += llama[i].shape[0]
			* (llama[i].rank > 1 ? llama[i].shape[1] : 1);
	}
	dl_writer_finish(&w, &file, NULL);
	while (elements--) {
		float v = (float)(0.02 * dl_rng_normal(&rng));
		unsigned char raw[4];

		dl_from_f32(raw, &v, DL_F32, 1);
		dl_buf_add(&file, raw, sizeof raw);
	}
	if (dl_write_file(path, file.data, file.len, &e)) {
		fprintf(stderr, "%s\n", e.text);
		exit(e.code);
	}
	dl_writer_release(&w);
	dl_buf_free(&file);
}

static void fail(const char *path)
{
	perror(path);
	exit(DL_IOERR);
}

/* A file of size bytes that begins with a header and goes on with holes. */
static int make_holes(const char *path, const struct dl_buf *header,
	uint64_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	if (fd < 0 || dl_write_full(fd, header->data, header->len)
		|| ftruncate(fd, (off_t)size))
		fail(path);
	return fd;
}

static void make_many(const char *path, uint64_t seed, size_t n)
{
	struct dl_buf header = DL_BUF_INIT;
	uint64_t size = many_header(&header, seed, n);

	close(make_holes(path, &header, header.len + size));
	dl_buf_free(&header);
}

/* Two elements with likely values. */
static void put_pair(int fd, const char *path, uint64_t at)
{
	float v[2] = {(float)dl_rng_normal(&rng), (float)dl_rng_normal(&rng)};
	unsigned char raw[4];

	dl_from_f32(raw, v, DL_BF16, 2);
	if (pwrite(fd, raw, sizeof raw, (off_t)at) != sizeof raw)
		fail(path);
}

/* Half of it embeddings, a layer's matrices an eightieth each. */
static void make_sparse(const char *path, uint64_t bytes)
{
	enum { LAYERS = 8, EMBED = 40, ALL = EMBED + 1 + 5 * LAYERS };
	static const char *const parts[] = {"mlp.down_proj", "mlp.gate_proj",
		"mlp.up_proj", "self_attn.o_proj", "self_attn.q_proj"};
	uint64_t rows = bytes / ALL / 2 / 1024 + 1, at;
	uint64_t shape[2] = {rows, 1024}, embed[2] = {EMBED * rows, 1024};
	struct dl_buf header = DL_BUF_INIT;
	struct dl_writer w = DL_WRITER_INIT;
	struct dl_header h;
	char name[80];
	int fd;

	dl_writer_meta(&w, "format", "pt");
	dl_writer_tensor(&w, "embed_tokens.weight", 19, DL_BF16, 2, embed);
	dl_writer_tensor(&w, "lm_head.weight", 14, DL_BF16, 2, shape);
	for (int i = 0; i < 5 * LAYERS; i++) {
		int n = snprintf(name, sizeof name, "layers.%d.%s.weight",
			i / 5, parts[i % 5]);

		dl_writer_tensor(&w, name, (size_t)n, DL_BF16, 2, shape);
	}
	dl_writer_finish(&w, &header, NULL);
	if (dl_header_parse(&h, header.data + 8, header.len - 8, NULL))
		exit(DL_SOFTWARE);
	fd = make_holes(path, &header, header.len + h.data_size);
	for (size_t i = 0; i < h.tensors; i++) {
		at = header.len + h.tensor[i].offset;
		put_pair(fd, path, at);
		put_pair(fd, path, at + h.tensor[i].size - 4);
	}
	close(fd);
	dl_header_release(&h);
	dl_buf_free(&header);
	dl_writer_release(&w);
}

int main(int argc, char **argv)
{
	size_t n;

	if (argc < 3)
		return DL_USAGE;
	rng = (struct dl_rng){(uint64_t)atoll(argv[1]), 0};
	n = ODD + below(12);
	if (argc > 3 && !strcmp(argv[3], "llama"))
		make_llama(argv[2]);
	else if (argc > 4 && !strcmp(argv[3], "many"))
		make_many(argv[2], rng.key, (size_t)atoll(argv[4]));
	else if (argc > 4 && !strcmp(argv[3], "sparse"))
		make_sparse(argv[2], (uint64_t)atoll(argv[4]));
	else if (argc > 3)
		make_shards(argv[2], (size_t)atoll(argv[3]), n);
	else
		make(argv[2], 0, 1, n);
	return 0;
}
