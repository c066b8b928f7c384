/*
 * pusher LINK NAME CODEC DAMAGE: a learner that makes one step and pushes
 * fragment 0 in a codec, damaged: "none"; "name", dl.codec is a word that is
 * none; "short", the tensor has a byte less; "nan", "inf" and "huge", every
 * scale is that. Prints what the syncer answers.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/client.h"
#include "tensor/coded.h"
#include "tensor/encoding.h"

struct pusher {
	struct client client;
	const char *damage;
	struct dl_quant quant;
	struct dl_layout layout;
	void *data;
};

static const uint16_t *scale_of(const char *damage)
{
	static const struct {
		const char *damage;
		uint16_t bf16;
	} known[] = {{"nan", 0x7fc0}, {"inf", 0x7f80}, {"huge", 0x7f7f}};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(known[i].damage, damage))
			return &known[i].bf16;
	return NULL;
}

/* The canonical record has the scales, BF16, before the codes, U8. */
static void damage_scales(
	const struct pusher *p, unsigned char *data, size_t bytes)
{
	const uint16_t *scale = scale_of(p->damage);
	size_t codes = 0;

	if (!scale)
		return;
	for (size_t i = 0; i < p->layout.tensors; i++)
		if (p->layout.tensor[i].fragment == 0)
			codes += dl_codec_bytes(
				p->quant.codec, p->layout.tensor[i].elements);
	for (size_t i = 0; i + 1 < bytes - codes; i += 2) {
		data[i] = *scale & 0xff;
		data[i + 1] = *scale >> 8;
	}
}

/* One byte for another in the header, of the same length. */
static void damage_header(const struct pusher *p, struct dl_buf *head)
{
	char *json = (char *)dl_buf_cstr(head) + 8; /* after its length */
	char *codec = strstr(json, "\"dl.codec\":\"");
	char *shape = strstr(json, "\"dl.shape.");

	if (!strcmp(p->damage, "name") && codec)
		codec[strlen("\"dl.codec\":\"")] = 'x';
	if (!strcmp(p->damage, "short") && shape) {
		char *digit = strpbrk(strchr(shape, ':'), "123456789");

		*digit = *digit == '1' ? '2' : (char)(*digit - 1);
	}
}

static void push(struct pusher *p, const struct dl_message *welcome)
{
	struct dl_message step = {.kind = DL_MSG_STEP,
		.clock = welcome->clock + 1,
		.steps = 1,
		.tokens = 1,
		.loss = NAN};
	struct dl_message m = {.kind = DL_MSG_PUSH,
		.seq = 1,
		.step = welcome->clock + 1,
		.base = welcome->versions[0],
		.steps = 1,
		.tokens = 1};
	size_t n = p->layout.fragment[0].elements;
	size_t bytes = dl_coded_bytes(&p->layout, 0, &p->quant);
	float *delta = dl_alloc_array(n, sizeof *delta);
	struct dl_buf head = DL_BUF_INIT;

	for (size_t i = 0; i < n; i++)
		delta[i] = 1e-6f * (float)(i % 7);
	p->data = dl_alloc(bytes);
	dl_coded_encode(NULL, &p->layout, 0, &p->quant, delta, p->data);
	damage_scales(p, p->data, bytes);
	free(delta);
	dl_message_pack_coded(&m, &p->layout, &p->quant, &head);
	damage_header(p, &head);
	dl_conn_send(&p->client.conn, &step);
	dl_conn_send_data(
		&p->client.conn, 0, &head, p->data, bytes, NULL, NULL);
}

static int on_message(void *ctx, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e)
{
	struct pusher *p = ctx;

	(void)c;
	if (m->kind == DL_MSG_ERROR)
		return client_refused(m, e);
	if (m->kind == DL_MSG_WELCOME) {
		if (dl_layout_parse(&p->layout, m->text, m->text_n, e))
			return e->code;
		push(p, m);
	}
	if (m->kind == DL_MSG_TAKEN && m->taken != DL_TAKEN_SETTLED) {
		printf("%s %s\n", dl_taken_name(m->taken),
			dl_refusal_name(m->refusal));
		p->client.done = 1;
	}
	return 0;
}

static int on_begin(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	(void)ctx;
	(void)c;
	(void)m;
	(void)h;
	(void)dest;
	(void)e;
	return 0;
}

static int on_whole(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void *dest, struct dl_err *e)
{
	return on_begin(ctx, c, m, h, &dest, e);
}

int main(int argc, char **argv)
{
	static const struct dl_conn_handlers handlers = {
		on_message, on_begin, on_whole};
	struct dl_message hello = {.kind = DL_MSG_HELLO,
		.role = DL_ROLE_LEARNER,
		.instance = 1,
		.codecs = "f32"};
	struct pusher p = {.quant = {.block = DL_QUANT_BLOCK}};
	struct dl_address a;
	struct dl_err e;

	if (argc != 5 || dl_address_parse(&a, argv[1], &e) ||
		dl_codec_parse(argv[3], &p.quant.codec))
		return 64;
	hello.name = argv[2];
	p.damage = argv[4];
	if (client_open(&p.client, &a, DL_INSECURE_NO, &handlers, &p, &e)) {
		puts(e.text);
		return e.code;
	}
	dl_conn_send(&p.client.conn, &hello);
	if (client_wait(&p.client, &e))
		puts("hung up");
	client_close(&p.client);
	dl_layout_release(&p.layout);
	free(p.data);
	return 0;
}
