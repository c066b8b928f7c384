/* A trainer's side of dl-trainer(7) in plain C: copy this file. One source file
 * of a program includes it. Tensors are F32, in memory of the program's own;
 * functions return 0, or -1 when a file is not what it should be. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct dl_tensor {
	const char *name, *shape; /* "[256,16]" */
	float *value;
	size_t n;
	int fragment; /* dl_layout says; -1: not in the layout */
};
static FILE *dl_heard, *dl_said;

/* Which fragment each tensor belongs to, from the file of the layout. */
static int dl_layout(struct dl_tensor *t, int tensors)
{
	FILE *f = fopen(getenv("DL_LAYOUT"), "r");
	char line[4096], name[1024];
	int p, i;

	for (i = 0; i < tensors; i++)
		t[i].fragment = -1;
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "%1023[^#\t]\t%*s\t%*s\t%*s\t%d", name, &p) == 2)
			for (i = 0; i < tensors; i++)
				if (!strcmp(t[i].name, name))
					t[i].fragment = p;
	return f ? fclose(f) : -1;
}

static int dl_say(const char *line)
{
	return fprintf(dl_said, "%s\n", line) < 0 || fflush(dl_said) ? -1 : 0;
}

/* Connects to the learner and says `ready`. */
static int dl_connect(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strncpy(a.sun_path, getenv("DL_TRAINER"), sizeof a.sun_path - 1);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a))
		return -1;
	dl_heard = fdopen(fd, "r");
	dl_said = fdopen(dup(fd), "w");
	return dl_say("ready 1");
}

static int dl_in(const struct dl_tensor *t, int p)
{
	return p < 0 ? t->fragment >= 0 : t->fragment == p;
}

/* Writes the tensors of fragment p (-1: all) as a safetensors file. */
static int dl_write(struct dl_tensor *t, int tensors, int p, const char *path)
{
	FILE *f = fopen(path, "w");
	char head[65536] = "{";
	uint64_t at = 0, n = 1;

	for (int i = 0; i < tensors && n < sizeof head - 2; i++)
		if (dl_in(&t[i], p)) {
			n += (uint64_t)snprintf(head + n, sizeof head - n,
				"%s\"%s\":{\"dtype\":\"F32\",\"shape\":%s,"
				"\"data_offsets\":[%lu,%lu]}", at ? "," : "",
				t[i].name, t[i].shape, at, at + 4 * t[i].n);
			at += 4 * t[i].n;
		}
	if (!f || n > sizeof head - 2)
		return -1;
	head[n++] = '}';
	fwrite(&n, sizeof n, 1, f);
	fwrite(head, n, 1, f);
	for (int i = 0; i < tensors; i++)
		if (dl_in(&t[i], p))
			fwrite(t[i].value, 4, t[i].n, f);
	return ferror(f) | fclose(f) ? -1 : 0;
}

/* value = keep value + add file, of the tensors of fragment p (-1: all);
 * nothing is changed when not all of them are there. */
static int dl_read(struct dl_tensor *t, int tensors, int p, const char *path,
	float keep, float add)
{
	FILE *f = fopen(path, "r");
	uint64_t n = 0, size, first, end;
	char *data = NULL, key[1100], *at;
	int ok = f && fread(&n, 8, 1, f) == 1 && !fseek(f, 0, SEEK_END) &&
		 n < 100000000 && (size = (uint64_t)ftell(f)) >= 8 + n &&
		 (data = calloc(1, size)) && !fseek(f, 8, SEEK_SET) &&
		 (size == 8 || fread(data, size - 8, 1, f) == 1);

	for (int i = 0; i < 2 * tensors && ok; i++) { /* checks, then reads */
		struct dl_tensor *to = &t[i % tensors];

		if (!dl_in(to, p))
			continue;
		snprintf(key, sizeof key, "\"%s\":{\"dtype\":\"F32\"", to->name);
		ok = (at = strstr(data, key)) &&
		     (at = strstr(at, "\"data_offsets\":[")) &&
		     sscanf(at + 16, "%lu,%lu", &first, &end) == 2 &&
		     end - first == 4 * to->n && end <= size - 8 - n;
		for (size_t j = 0; j < to->n && ok && i >= tensors; j++) {
			float x;

			memcpy(&x, data + n + first + 4 * j, 4);
			to->value[j] = (keep ? keep * to->value[j] : 0) + add * x;
		}
	}
	free(data);
	if (f)
		fclose(f);
	return ok ? 0 : -1;
}
