/*
 * dl-stat: what a run has done, from its tape.
 */
#include <string.h>

#include "base/output.h"
#include "cmd/cmd.h"
#include "cmd/stat/page.h"
#include "cmd/stat/prometheus.h"
#include "cmd/stat/sheet.h"
#include "cmd/stat/source.h"
#include "cmd/stat/summary.h"
#include "cmd/stat/watch.h"
#include "state/figures.h"

static const char usage[] =
	"usage: dl-stat [-t | --json | --prometheus | --html FILE] [-T TABLE]\n"
	"               [-w PERIOD] [-o FILE] TAPE\n"
	"  -t, --tsv             a table only, with tabs between columns\n"
	"  -T, --table TABLE     which: members (usual), fragments, history "
	"or\n"
	"                        timeline\n"
	"      --json            all figures as one JSON object\n"
	"      --prometheus      as metrics for Prometheus\n"
	"      --html FILE           a page of charts, in FILE\n"
	"  -w, --watch PERIOD    again and again, until the run is over\n"
	"  -o, --output FILE     written whole; standard output\n"
	"  -h, --help  -V, --version  -q, --quiet  -v, --verbose\n";

enum { JSON = 256, PROMETHEUS, HTML };

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

static void parse(struct options *o, int argc, char **argv)
{
	static const struct option options[] = {{"tsv", no_argument, NULL, 't'},
		{"table", required_argument, NULL, 'T'},
		{"json", no_argument, NULL, JSON},
		{"prometheus", no_argument, NULL, PROMETHEUS},
		{"html", required_argument, NULL, HTML},
		{"watch", required_argument, NULL, 'w'},
		{"output", required_argument, NULL, 'o'}, CMD_LONG, {0}};
	int opt;

	while ((opt = getopt_long(
			argc, argv, "tT:w:o:" CMD_SHORT, options, NULL)) != -1)
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
		default:
			cmd_common_option(opt);
		}
	if (o->sheet && o->format > FORMAT_TSV)
		cmd_usage("--table: all tables are in that");
	if (optind + 1 != argc)
		cmd_usage("name one tape, or - for standard input");
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

int main(int argc, char **argv)
{
	struct options o = {.output = "-"};
	struct source source;
	struct watch watch;
	struct dl_err e;
	int code;

	cmd_init("dl-stat", usage);
	parse(&o, argc, argv);
	dl_output_on_signal();
	watch_init(&watch, o.output, o.period);
	code = source_open(&source, argv[optind], &e);
	if (!code)
		code = show(&o, &source, &watch, &e);
	while (!code && watch_wait(&watch))
		code = show(&o, &source, &watch, &e);
	source_close(&source);
	return code ? cmd_fail(&e) : 0;
}
