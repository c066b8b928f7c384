/*
 * dl-stat: what a run has done, from its tape or its syncer.
 */
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "cmd/cmd.h"
#include "cmd/key.h"
#include "cmd/link.h"
#include "cmd/stat/http.h"
#include "cmd/stat/page.h"
#include "cmd/stat/prometheus.h"
#include "cmd/stat/sheet.h"
#include "cmd/stat/source.h"
#include "cmd/stat/summary.h"
#include "cmd/stat/watch.h"
#include "state/figures.h"

static const char usage[] =
	"usage: dl-stat [-t | --json | --prometheus | --html FILE] [-T TABLE]\n"
	"               [-w PERIOD] [-o FILE] [--listen HOST:PORT]\n"
	"               TAPE | --from LINK [--key FILE] [--insecure]\n"
	"  -t, --tsv             a table only, with tabs between columns\n"
	"  -T, --table TABLE     which: members (usual), fragments, history\n"
	"                        or timeline\n"
	"      --json            all figures as one JSON object\n"
	"      --prometheus      as metrics for Prometheus\n"
	"      --html FILE       a page of charts, in FILE\n"
	"  -w, --watch PERIOD    again and again, until the run is over\n"
	"  -o, --output FILE     written whole; standard output\n"
	"      --listen HOST:PORT  serve metrics by HTTP, on loopback only\n"
	"      --from LINK       of a live syncer\n"
	"      --key FILE        our key, for sessions\n"
	"      --insecure        plain tcp, on loopback; said twice: anywhere\n"
	"  -h, --help  -V, --version  -q, --quiet  -v, --verbose\n";

enum { JSON = 256, PROMETHEUS, HTML, LISTEN, FROM, KEY, INSECURE };

enum format {
	FORMAT_TEXT,
	FORMAT_TSV,
	FORMAT_JSON,
	FORMAT_PROMETHEUS,
	FORMAT_HTML
};

struct options {
	enum format format;
	const struct sheet *sheet;
	int64_t period; /* 0: once */
	const char *output;
	const char *listen; /* HOST:PORT, or NULL */
	const char *from;   /* a link, or NULL: a tape */
	const char *key;    /* a file */
	enum dl_insecure allowed;
};

static const struct sheet *find_sheet(const char *name)
{
	static const struct sheet *const all[] = {&sheet_members,
		&sheet_fragments, &sheet_history, &sheet_timeline};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	cmd_usage("--table %s: members, fragments, history or timeline", name);
}

static void take_format(struct options *o, enum format format)
{
	if (o->format != FORMAT_TEXT && o->format != format)
		cmd_usage("choose one of --tsv, --json, --prometheus and "
			  "--html");
	o->format = format;
}

static int parse_source(struct options *o, int opt)
{
	switch (opt) {
	case FROM:
		o->from = optarg;
		break;
	case KEY:
		o->key = optarg;
		break;
	case INSECURE:
		link_insecure(&o->allowed);
		break;
	default:
		return 0;
	}
	return 1;
}

static void parse_output(struct options *o, int opt)
{
	switch (opt) {
	case 't':
		take_format(o, FORMAT_TSV);
		break;
	case 'T':
		o->sheet = find_sheet(optarg);
		break;
	case JSON:
		take_format(o, FORMAT_JSON);
		break;
	case PROMETHEUS:
		take_format(o, FORMAT_PROMETHEUS);
		break;
	case HTML:
		take_format(o, FORMAT_HTML);
		o->output = optarg;
		break;
	case 'w':
		o->period = cmd_period("--watch", optarg);
		break;
	case 'o':
		o->output = optarg;
		break;
	case LISTEN:
		take_format(o, FORMAT_PROMETHEUS);
		o->listen = optarg;
		break;
	default:
		cmd_common_option(opt);
	}
}

static void parse(struct options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{"tsv", no_argument, NULL, 't'},
		{"table", required_argument, NULL, 'T'},
		{"json", no_argument, NULL, JSON},
		{"prometheus", no_argument, NULL, PROMETHEUS},
		{"html", required_argument, NULL, HTML},
		{"watch", required_argument, NULL, 'w'},
		{"output", required_argument, NULL, 'o'},
		{"listen", required_argument, NULL, LISTEN},
		{"from", required_argument, NULL, FROM},
		{"key", required_argument, NULL, KEY},
		{"insecure", no_argument, NULL, INSECURE}, CMD_LONG, {0}};
	int opt;

	while ((opt = getopt_long(argc, argv, "tT:w:o:" CMD_SHORT, options,
			NULL)) != -1)
		if (!parse_source(o, opt))
			parse_output(o, opt);
	if (o->sheet && o->format > FORMAT_TSV)
		cmd_usage("--table: all tables are in that");
	if (o->listen && (o->period || strcmp(o->output, "-") != 0))
		cmd_usage("--listen: answers whenever it is asked");
	if (optind + !o->from != argc)
		cmd_usage("name one tape, or - for standard input, or a link "
			  "with --from");
	if (!o->from && (o->key || o->allowed))
		cmd_usage("--key and --insecure are for links");
}

static void render(
	const struct options *o, const struct dl_stat *s, struct dl_buf *out)
{
	const struct sheet *sheet = o->sheet ? o->sheet : &sheet_members;

	switch (o->format) {
	case FORMAT_TEXT:
		if (!o->sheet) {
			summary_put(out, s);
			dl_buf_byte(out, '\n');
		}
		sheet_text(out, sheet, s);
		break;
	case FORMAT_TSV:
		sheet_tsv(out, sheet, s);
		break;
	case FORMAT_JSON:
		dl_figures_write(out, s);
		break;
	case FORMAT_PROMETHEUS:
		prometheus_put(out, s);
		break;
	case FORMAT_HTML:
		page_put(out, s);
		break;
	}
}

static int show(const struct options *o, struct source *source,
	struct watch *watch, struct dl_err *e)
{
	const struct dl_stat *s = source_look(source, e);
	struct dl_buf out = DL_BUF_INIT;
	int code;

	if (!s)
		return e->code;
	if (!o->period) {
		if (source_torn(source))
			cmd_note("%s: the last line is torn; left out",
				source->place);
		summary_warn(s);
	}
	watch_begin(watch, &out);
	render(o, s, &out);
	code = watch_write(watch, &out, e);
	watch->over = s->totals.done != 0;
	dl_buf_free(&out);
	return code;
}

static int put_metrics(void *ctx, struct dl_buf *out, struct dl_err *e)
{
	const struct dl_stat *s = source_look(ctx, e);

	if (!s)
		return e->code;
	prometheus_put(out, s);
	return 0;
}

static int serve(
	const struct options *o, struct source *source, struct dl_err *e)
{
	char *link = dl_sprintf("tcp:%s", o->listen);
	struct dl_address a;
	int code = dl_address_parse(&a, link, e);

	if (!code && a.keyed)
		code = dl_fail(e, DL_USAGE, "a key is of no use there");
	if (!code)
		code = http_serve(&a, put_metrics, source, e);
	free(link);
	return code ? dl_at(e, "--listen") : 0;
}

static int work(
	const struct options *o, struct source *source, struct dl_err *e)
{
	struct watch watch;
	int code;

	if (o->listen)
		return serve(o, source, e);
	watch_init(&watch, o->output, o->period);
	do
		code = show(o, source, &watch, e);
	while (!code && watch_wait(&watch));
	return code;
}

/* A syncer that is asked anew each time. */
static struct dl_key *open_live(
	const struct options *o, struct source *source, struct dl_address *a)
{
	struct dl_key *key;
	struct dl_err e;

	if (dl_address_parse(a, o->from, &e))
		cmd_usage("%s", e.text);
	if (a->kind == DL_LINK_DIR)
		cmd_usage("--from %s: of a spool read the tape", o->from);
	link_allow(a, 1, o->allowed);
	key = key_use(o->key, a, 1);
	source_open_live(source, a, o->allowed);
	return key;
}

int main(int argc, char **argv)
{
	struct options o = {.output = "-"};
	struct dl_address address;
	struct dl_key *key = NULL;
	struct source source;
	struct dl_err e;
	int code = 0;

	cmd_init("dl-stat", usage);
	parse(&o, argc, argv);
	dl_output_on_signal();
	if (o.from)
		key = open_live(&o, &source, &address);
	else
		code = source_open(&source, argv[optind], &e);
	if (!code)
		code = work(&o, &source, &e);
	source_close(&source);
	dl_key_free(key);
	return code ? cmd_fail(&e) : 0;
}
