#include "cmd/dl-train.h"

#include <string.h>

#include "cmd/cmd.h"
#include "train/store.h"

static const char usage[] =
	"usage: dl-train init [-q] [-L layers] [-H heads] [-K kv-heads] "
	"[-d width]\n"
	"                [-F inner] [-c context] [-s seed] [--vocab n] "
	"[--tied]\n"
	"                folder\n"
	"       dl-train run [-qv] [-o model] [--steps n | --tokens n] "
	"[-b batch]\n"
	"                [-t threads] [-s seed] [--slot n] [--lr rate] "
	"[--warmup n]\n"
	"                [--decay x] [--clip x] [--step-time duration] "
	"[--eval n]\n"
	"                [--hold-out part] [--save state] [--resume state]\n"
	"                [--config file] model data ...\n"
	"       dl-train eval [-b batch] [-t threads] [--hold-out part]\n"
	"                [--config file] model data ...\n"
	"       dl-train sample [-n tokens] [-p prompt] [-s seed]\n"
	"                [--temperature x] [--config file] model\n"
	"       dl-train -h | -V\n";

int train_job_open(struct train_job *j, const char *model, const char *config,
	char *const *data, size_t n, double held_out,
	const struct dl_training_options *o, struct dl_err *e)
{
	struct dl_config c;
	int rc;

	memset(j, 0, sizeof(*j));
	rc = dl_store_read_config(&c, config, model, e);
	if (rc)
		return rc;
	rc = dl_corpus_read(
		&j->corpus, data, n, c.vocab > 256, c.vocab, held_out, e);
	if (rc)
		return rc;
	dl_llama_init(&j->m, &c);
	dl_training_init(&j->training, &j->m, &j->corpus, o);
	rc = dl_store_read_model(&j->m, model, j->training.values, e);
	if (rc)
		train_job_close(j);
	return rc;
}

void train_job_close(struct train_job *j)
{
	dl_training_release(&j->training);
	dl_corpus_release(&j->corpus);
	dl_llama_release(&j->m);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} commands[] = {{"init", train_init}, {"run", train_run},
		{"eval", train_eval}, {"sample", train_sample}};
	static const struct option common[] = {CMD_LONG, {NULL, 0, NULL, 0}};
	int opt;

	cmd_init("dl-train", usage);
	while ((opt = getopt_long(argc, argv, "+:" CMD_SHORT, common, NULL)) !=
		-1)
		cmd_common_option(opt);
	if (optind == argc)
		cmd_usage("no command");
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[optind], commands[i].name)) {
			int at = optind;

			optind = 0; /* getopt starts afresh, past the command */
			return commands[i].run(argc - at, argv + at);
		}
	cmd_usage("%s: no such command", argv[optind]);
}
