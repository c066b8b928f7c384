#include "many.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"

enum { TIED = 10 }; /* one in so many */

uint64_t many_header(struct dl_buf *header, uint64_t seed, size_t n)
{
	struct dl_rng rng = {seed, 0};
	size_t *order = dl_alloc_array(n, sizeof *order);
	uint64_t at = 0;

	for (size_t i = 0; i < n; i++) {
		size_t j = (size_t)dl_rng_below(&rng, i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	dl_buf_add(header, (unsigned char[8]){0}, 8);
	for (size_t k = 0; k < n; k++) {
		size_t i = order[k], target = i - (i % TIED == TIED - 1);
		/* On average 2.4 elements, and 3.6 n are 60% of all. */
		uint64_t elements = i ? 1 + target % 4 : 18 * n / 5;

		dl_buf_printf(header,
			"%s\"model.layers.%zu.w%zu\":{\"dtype\":\"BF16\","
			"\"shape\":[%llu],\"data_offsets\":[%llu,%llu]}",
			k ? "," : "{", i / 100, i, (unsigned long long)elements,
			(unsigned long long)at,
			(unsigned long long)(at + 2 * elements));
		at += 2 * elements;
	}
	dl_buf_byte(header, '}');
	dl_put_le64(header->data, header->len - 8);
	free(order);
	return at;
}

void many_open(struct dl_model *m, uint64_t seed, size_t n)
{
	struct dl_buf header = DL_BUF_INIT;
	uint64_t size = many_header(&header, seed, n);
	FILE *file = tmpfile();
	int fd = file ? dup(fileno(file)) : -1;
	struct dl_err e;

	*m = (struct dl_model)DL_MODEL_INIT;
	if (fd < 0 || ftruncate(fd, (off_t)(header.len + size)) ||
		pwrite(fd, header.data, header.len, 0) != (ssize_t)header.len ||
		dl_model_add_fd(m, "many", fd, &e) || dl_model_list(m, &e)) {
		fprintf(stderr, "no model of %zu tensors\n", n);
		exit(1);
	}
	fclose(file);
	dl_buf_free(&header);
}

size_t many_tie(struct dl_plan_choice **choice, size_t n)
{
	size_t choices = 0;

	*choice = dl_alloc_array(n / TIED, sizeof **choice);
	for (size_t i = TIED - 1; i < n; i += TIED) {
		struct dl_plan_choice *c = &(*choice)[choices++];

		c->pattern = dl_sprintf("model.layers.%zu.w%zu", i / 100, i);
		c->alias = dl_sprintf("model.layers.%zu.w%zu", i / 100, i - 1);
		c->rule = DL_ALIAS;
	}
	return choices;
}

void many_untie(struct dl_plan_choice *choice, size_t choices)
{
	for (size_t i = 0; i < choices; i++) {
		free((char *)choice[i].pattern);
		free((char *)choice[i].alias);
	}
	free(choice);
}
