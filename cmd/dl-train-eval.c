#include <math.h>
#include <stdio.h>

#include "cmd/cmd.h"
#include "cmd/dl-train.h"
#include "train/blas.h"

enum { HOLD_OUT = 256, CONFIG };

static const struct option options[] = {
	{"batch", required_argument, NULL, 'b'},
	{"threads", required_argument, NULL, 't'},
	{"hold-out", required_argument, NULL, HOLD_OUT},
	{"config", required_argument, NULL, CONFIG},
	CMD_LONG,
	{NULL, 0, NULL, 0},
};

static int report(struct train_job *j)
{
	size_t first = j->corpus.train, end = j->corpus.tokens;
	const char *unit = j->corpus.width == 1 ? "byte" : "token";
	double loss = dl_training_loss(&j->training, first, end);

	if (isnan(loss) && end - first < 2) {
		cmd_warn("%zu tokens are held out: nothing to evaluate",
			end - first);
		return DL_DATA;
	}
	printf("#tokens\tnats/%s\tbits/%s\n", unit, unit);
	printf("%zu\t%.6f\t%.6f\n", end - first - 1, loss, loss / M_LN2);
	return cmd_flush();
}

int train_eval(int argc, char **argv)
{
	struct dl_training_options o = {.batch = 16, .threads = 1};
	double held_out = 0.1;
	const char *config = NULL;
	struct train_job j;
	struct dl_err e;
	int opt, rc;

	while ((opt = getopt_long(
			argc, argv, "b:t:" CMD_SHORT, options, NULL)) != -1)
		switch (opt) {
		case 'b':
			o.batch = cmd_u64("--batch", optarg, 1, 1 << 20);
			break;
		case 't':
			o.threads =
				(unsigned)cmd_u64("--threads", optarg, 0, 1024);
			break;
		case HOLD_OUT:
			held_out = cmd_double("--hold-out", optarg, 0, 1);
			break;
		case CONFIG:
			config = optarg;
			break;
		default:
			cmd_common_option(opt);
		}
	if (argc - optind < 2)
		cmd_usage("eval: a model and its data");
	rc = dl_blas_load(&e);
	if (!rc)
		rc = train_job_open(&j, argv[optind], config, argv + optind + 1,
			(size_t)(argc - optind - 1), held_out, &o, &e);
	if (rc)
		return cmd_fail(&e);
	rc = report(&j);
	train_job_close(&j);
	return rc;
}
