/*
 * dl-quant: encode records in fewer bits, and decode them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/output.h"
#include "cmd/cmd.h"
#include "tensor/decode.h"
#include "tensor/model.h"
#include "tensor/name.h"
#include "tensor/owed.h"

static const char usage[] =
	"usage: dl-quant -c CODEC [-b BLOCK] [-r] [-s SEED] [-e FILE] [-o FILE]"
	" [-z[LEVEL]] [FILE ...]\n"
	"       dl-quant -d [-o FILE] [-z[LEVEL]] [FILE ...]\n"
	"  -c, --codec CODEC    f32, f16, bf16, int8, int4, fp4, int2 or int1\n"
	"  -b, --block BLOCK    values that share a scale, 16 to 1024 (128)\n"
	"  -r, --random         round up or down by chance\n"
	"  -s, --seed SEED      of that chance (0)\n"
	"  -e, --error FILE     add what was lost before, keep what is lost "
	"now\n"
	"  -d, --decode         make values of encoded records\n"
	"  -o, --output FILE    instead of standard output\n"
	"  -z, --zstd[=LEVEL]   compress it, level 1 to 19 (3)\n"
	"  -h, --help  -V, --version  -q, --quiet  -v, --verbose\n";

struct options {
	struct dl_quant q;
	int encode, decode, zstd;
	const char *error, *output;
	char **file;
	int files;
};

/* A record of the input. */
struct item {
	const struct dl_records *in;
	size_t record;
	int owes;    /* what it lost before is in */
	size_t owed; /* that record of the error file */
};

struct job {
	const struct options *o;
	struct dl_pool *pool;
	struct dl_model m;
	struct item *item;
	size_t items;
	struct dl_records owed;
};

static int at_item(const struct item *i, struct dl_err *e)
{
	if (i->in->records > 1)
		dl_at(e, "record %zu", i->record);
	return dl_at(e, "%s", i->in->path);
}

static const struct dl_header *header(const struct item *i)
{
	return &i->in->record[i->record].header;
}

static int read_files(struct job *j, struct dl_err *e)
{
	size_t n = 0;
	int rc = 0;

	for (int i = 0; i < j->o->files && !rc; i++)
		rc = dl_model_add(&j->m, j->o->file[i], e);
	for (size_t f = 0; f < j->m.files; f++)
		n += j->m.file[f].records;
	j->item = dl_alloc_array(n, sizeof *j->item);
	for (size_t f = 0; f < j->m.files; f++)
		for (size_t r = 0; r < j->m.file[f].records; r++)
			j->item[j->items++] =
				(struct item){.in = &j->m.file[f], .record = r};
	return rc;
}

static struct dl_encode encoding(const struct job *j, const struct item *i)
{
	return (struct dl_encode){.q = &j->o->q,
		.pool = j->pool,
		.in = i->in,
		.record = i->record,
		.owed = i->owes ? &j->owed : NULL,
		.owed_record = i->owed};
}

/* Finds what was lost before of each record; a file keeps one sender's. */
static int find_owed(struct job *j, struct dl_err *e)
{
	int rc = dl_owed_open(&j->owed, j->o->error, e);

	for (size_t k = 0; k < j->items && !rc; k++) {
		struct item *i = &j->item[k];

		for (size_t b = 0; b < k && !rc; b++)
			if (dl_owed_same_fragment(
				    header(&j->item[b]), header(i)))
				rc = dl_fail(e, DL_DATA,
					"of the same fragment as a record "
					"before it: %s would hold both",
					j->o->error);
		if (rc)
			return at_item(i, e);
		rc = dl_owed_find(&j->owed, header(i), &i->owed, e);
		i->owes = rc == 1;
		rc = i->owes ? 0 : rc;
	}
	return rc;
}

/* Writes the error file anew: fragments that were not encoded now stay. */
static int write_owed(
	const struct job *j, struct dl_output *o, struct dl_err *e)
{
	int rc = 0;

	for (size_t r = 0; r < j->owed.records && !rc; r++) {
		const struct item *now = NULL;
		struct dl_encode n;

		for (size_t k = 0; k < j->items; k++)
			if (j->item[k].owes && j->item[k].owed == r)
				now = &j->item[k];
		if (now) {
			n = encoding(j, now);
			rc = dl_owed_write(&n, o, e);
		} else {
			rc = dl_decode_copy(&j->owed, r, o, e);
		}
	}
	for (size_t k = 0; k < j->items && !rc; k++) {
		struct dl_encode n = encoding(j, &j->item[k]);

		if (!n.owed)
			rc = dl_owed_write(&n, o, e);
	}
	return rc;
}

static void print_report(size_t record, const struct dl_header *h,
	const struct dl_encode_report *report)
{
	struct dl_buf out = DL_BUF_INIT;

	for (size_t i = 0; i < h->tensors; i++) {
		const struct dl_encode_report *r = &report[i];
		double n = (double)h->tensor[i].elements;

		if (!r->encoded)
			continue;
		dl_buf_printf(&out, "%zu\t", record);
		dl_name_escape(&out, h->tensor[i].name.s, h->tensor[i].name.n);
		dl_buf_printf(&out, "\t%s\t%.0f",
			dl_dtype_name(h->tensor[i].dtype), n);
		if (n > 0)
			dl_buf_printf(&out, "\t%.3f\t%.6f\t%.3f\n",
				8 * (double)r->bytes / n,
				r->all > 0 ? sqrt(r->lost / r->all) : 0,
				(double)r->bytes / (double)r->zstd);
		else
			dl_buf_str(&out, "\t-\t-\t-\n");
	}
	fwrite(out.data, 1, out.len, stderr);
	dl_buf_free(&out);
}

static int encode_item(
	const struct job *j, size_t k, struct dl_output *o, struct dl_err *e)
{
	struct dl_encode n = encoding(j, &j->item[k]);
	const struct dl_header *h = header(&j->item[k]);
	struct dl_encode_report *report = NULL;
	int rc;

	if (cmd_verbosity > 0)
		report = dl_alloc_array(h->tensors, sizeof *report);
	rc = dl_encode_write(&n, o, report, e);
	if (!rc && report)
		print_report(k, h, report);
	free(report);
	return rc;
}

static int encode_all(const struct job *j, struct dl_output *o,
	struct dl_output *owed, struct dl_err *e)
{
	int rc = 0;

	if (cmd_verbosity > 0)
		fputs("# record\tname\tdtype\telements\tbits\terror\tzstd\n",
			stderr);
	for (size_t k = 0; k < j->items && !rc; k++)
		rc = encode_item(j, k, o, e);
	return rc || !j->o->error ? rc : write_owed(j, owed, e);
}

/* Everything is checked before anything is written. */
static int encode(struct job *j, struct dl_err *e)
{
	struct dl_output o = DL_OUTPUT_INIT, owed = DL_OUTPUT_INIT;
	int rc = j->o->error ? find_owed(j, e) : 0;

	for (size_t k = 0; k < j->items && !rc; k++) {
		struct dl_encode n = encoding(j, &j->item[k]);

		rc = dl_encode_check(&n, e);
		if (rc)
			at_item(&j->item[k], e);
	}
	if (!rc && j->o->error)
		rc = dl_output_open(&owed, j->o->error, e);
	if (!rc)
		rc = dl_output_open(&o, j->o->output, e);
	if (!rc) {
		dl_output_compress(&o, j->o->zstd);
		rc = encode_all(j, &o, &owed, e);
	}
	if (!rc)
		rc = dl_output_commit(&o, e);
	if (!rc && j->o->error)
		rc = dl_output_commit(&owed, e);
	dl_output_abort(&o);
	dl_output_abort(&owed);
	return rc;
}

static int decode_items(
	const struct job *j, struct dl_decode *d, struct dl_err *e)
{
	struct dl_output o = DL_OUTPUT_INIT;
	int rc = 0;

	for (size_t k = 0; k < j->items && !rc; k++) {
		const struct item *i = &j->item[k];

		rc = dl_decode_open(&d[k], i->in, i->record, e);
		if (!rc)
			rc = dl_decode_check(&d[k], e);
		if (rc)
			return at_item(i, e);
	}
	rc = dl_output_open(&o, j->o->output, e);
	if (!rc)
		dl_output_compress(&o, j->o->zstd);
	for (size_t k = 0; k < j->items && !rc; k++)
		rc = dl_decode_write(&d[k], j->pool, &o, e);
	if (!rc)
		rc = dl_output_commit(&o, e);
	dl_output_abort(&o);
	return rc;
}

static int decode(const struct job *j, struct dl_err *e)
{
	struct dl_decode *d = dl_alloc_array(j->items, sizeof *d);
	int rc = decode_items(j, d, e);

	for (size_t k = 0; k < j->items; k++)
		dl_decode_close(&d[k]);
	free(d);
	return rc;
}

static int run(const struct options *o)
{
	struct job j = {.o = o, .m = DL_MODEL_INIT, .owed = DL_RECORDS_INIT};
	struct dl_err e;
	int rc;

	j.pool = dl_pool_new(0);
	rc = read_files(&j, &e);
	if (!rc)
		rc = o->decode ? decode(&j, &e) : encode(&j, &e);
	free(j.item);
	dl_records_close(&j.owed);
	dl_model_close(&j.m);
	dl_pool_free(j.pool);
	return rc ? cmd_fail(&e) : 0;
}

static uint32_t parse_block(const char *arg)
{
	uint64_t n =
		cmd_u64("--block", arg, DL_QUANT_BLOCK_MIN, DL_QUANT_BLOCK_MAX);

	if (!dl_quant_block_valid(n))
		cmd_usage("--block is a power of two from %d to %d",
			DL_QUANT_BLOCK_MIN, DL_QUANT_BLOCK_MAX);
	return (uint32_t)n;
}

static void check(const struct options *o, int tuned)
{
	if (o->encode + o->decode != 1)
		cmd_usage("either -c CODEC or -d is wanted");
	if (o->decode && (tuned || o->error))
		cmd_usage("-d takes none of -b, -r, -s and -e");
	if (o->error && !strcmp(o->error, "-"))
		cmd_usage("-e: what is owed is kept in a file");
	cmd_apart("-o", o->output, "-e", o->error);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"codec", required_argument, NULL, 'c'},
		{"block", required_argument, NULL, 'b'},
		{"random", no_argument, NULL, 'r'},
		{"seed", required_argument, NULL, 's'},
		{"error", required_argument, NULL, 'e'},
		{"decode", no_argument, NULL, 'd'},
		{"output", required_argument, NULL, 'o'}, CMD_ZSTD_LONG,
		CMD_LONG, {0}};
	static char dash[] = "-", *standard_input[] = {dash};
	struct options o = {.q = {.block = DL_QUANT_BLOCK},
		.output = "-",
		.file = standard_input,
		.files = 1};
	int opt, tuned = 0;

	cmd_init("dl-quant", usage);
	dl_output_on_signal();
	while ((opt = getopt_long(argc, argv, "c:b:rs:e:do:" CMD_ZSTD CMD_SHORT,
			options, NULL)) != -1) {
		tuned |= opt == 'b' || opt == 'r' || opt == 's';
		switch (opt) {
		case 'c':
			if (dl_codec_parse(optarg, &o.q.codec))
				cmd_usage("unknown codec \"%s\"", optarg);
			o.encode = 1;
			break;
		case 'b':
			o.q.block = parse_block(optarg);
			break;
		case 'r':
			o.q.stochastic = 1;
			break;
		case 's':
			o.q.seed = cmd_u64("--seed", optarg, 0, UINT64_MAX);
			break;
		case 'e':
			o.error = optarg;
			break;
		case 'd':
			o.decode = 1;
			break;
		case 'o':
			o.output = optarg;
			break;
		case 'z':
			o.zstd = cmd_zstd(optarg);
			break;
		default:
			cmd_common_option(opt);
		}
	}
	check(&o, tuned);
	if (optind < argc) {
		o.file = argv + optind;
		o.files = argc - optind;
	}
	return run(&o);
}
