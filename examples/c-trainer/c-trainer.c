/*
 * A trainer in plain C: a language model of bytes that knows the last two,
 * logits = first[last byte] + second[the byte before], trained by SGD with
 * momentum. It shows what a trainer must do, not how to train well.
 *
 *	cc -O2 -o c-trainer c-trainer.c -lm
 *	./c-trainer init start.safetensors
 *	dl-sync serve ... start.safetensors
 *	dl-learn LINK -- ./c-trainer TEXT
 */
#include <math.h>

#include "dl_trainer.h"

enum { BYTES = 256, SIZE = BYTES * BYTES, BATCH = 512 };

static float first[SIZE], second[SIZE], moment[2][SIZE];
static struct dl_tensor tensors[] = {
	{"first.weight", "[256,256]", first, SIZE, 0},
	{"second.weight", "[256,256]", second, SIZE, 0},
};
static unsigned char *text;
static size_t length;
static uint64_t clock_, since; /* since: where the moments were zero */

/* A sample is a function of seed, slot and clock, so that a trainer that is
 * started again goes on with the next. */
static size_t draw(uint64_t i)
{
	uint64_t x = clock_ * BATCH + i +
		     0x9e3779b97f4a7c15u * (1 + strtoull(getenv("DL_SLOT"), 0, 10));

	x += strtoull(getenv("DL_SEED"), 0, 10) << 32;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (size_t)((x ^ x >> 31) % (length - 2));
}

/* Adds the gradient of one prediction to the moments; its loss in nats. */
static double learn(const unsigned char *at)
{
	float *row[2] = {first + at[1] * BYTES, second + at[0] * BYTES};
	float *m[2] = {moment[0] + at[1] * BYTES, moment[1] + at[0] * BYTES};
	double p[BYTES], sum = 0;

	for (int i = 0; i < BYTES; i++)
		sum += p[i] = exp((double)row[0][i] + (double)row[1][i]);
	for (int i = 0; i < BYTES; i++)
		for (int k = 0; k < 2; k++)
			m[k][i] += (float)(p[i] / sum - (i == at[2])) / BATCH;
	return log(sum) - log(p[at[2]]);
}

static double step(void)
{
	double loss = 0, rate = 10 * fmin(1, (double)(clock_ - since + 1) / 10);

	for (int k = 0; k < 2; k++)
		for (int i = 0; i < SIZE; i++)
			moment[k][i] *= 0.9f;
	for (uint64_t i = 0; i < BATCH; i++)
		loss += learn(text + draw(i));
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < SIZE; i++)
			tensors[k].value[i] -= (float)rate * moment[k][i];
	clock_++;
	return loss / BATCH;
}

/* -1: the order cannot be obeyed. */
static int obey(const char *line)
{
	char path[1024], how[16] = "", fresh[16] = "";
	float a = 0;
	int p;

	if (sscanf(line, "load %1023s", path) == 1)
		return dl_read(tensors, 2, -1, path, 0, 1);
	if (sscanf(line, "send %d %1023s", &p, path) == 2)
		return dl_write(tensors, 2, p, path);
	if (sscanf(line, "apply %d %1023s %15s %f", &p, path, how, &a) >= 3) {
		if (!strcmp(how, "set"))
			return dl_read(tensors, 2, p, path, 0, 1);
		if (!strcmp(how, "add"))
			return dl_read(tensors, 2, p, path, 1, 1);
		return dl_read(tensors, 2, p, path, a, 1 - a);
	}
	if (sscanf(line, "clock %lu %15s", &clock_, fresh) >= 1) {
		if (*fresh) {
			memset(moment, 0, sizeof moment);
			since = clock_;
		}
		return 0;
	}
	return -1; /* it may refuse save, restore, prepare, export, import */
}

static int train(void)
{
	char line[8192], answer[64];

	if (dl_layout(tensors, 2) || dl_connect())
		return 1;
	while (fgets(line, sizeof line, dl_heard)) {
		if (!strcmp(line, "go\n")) {
			snprintf(answer, sizeof answer, "step %d %.6f", BATCH,
				step());
			dl_say(answer);
		} else if (!strcmp(line, "stop\n")) {
			return dl_say("ok") ? 1 : 0;
		} else {
			dl_say(obey(line) ? "error cannot do that" : "ok");
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	FILE *f;

	if (argc == 3 && !strcmp(argv[1], "init"))
		return dl_write(tensors, 2, -1, argv[2]) ? 1 : 0;
	if (argc != 2 || !getenv("DL_TRAINER") || !(f = fopen(argv[1], "r"))) {
		fprintf(stderr, "usage: c-trainer init MODEL\n"
				"       dl-learn LINK -- c-trainer TEXT\n");
		return 64;
	}
	text = malloc(1 << 20);
	length = fread(text, 1, 1 << 20, f);
	fclose(f);
	return length < 3 ? 65 : train();
}
