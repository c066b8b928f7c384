#include "cmd/dl-train.h"

#include <string.h>

#include "base/cpu.h"
#include "cmd/cmd.h"
#include "train/store.h"

static const char usage[] =
	"usage: dl-train init [-fq] [-L LAYERS] [-H HEADS] [-K "
	"KV-HEADS] [-d WIDTH]\n"
	"                     [-F INNER] [-c CONTEXT] [-s SEED] "
	"[--vocab N] [--tied]\n"
	"                     FOLDER\n"
	"       dl-train run [-qv] [-o MODEL] [--steps N | --tokens "
	"N] [-b BATCH]\n"
	"                    [-t THREADS] [-s SEED] [--slot N] [--lr RATE]\n"
	"                    [--warmup N] [--decay X] [--clip X]\n"
	"                    [--step-time DURATION] [--eval N] "
	"[--hold-out PART]\n"
	"                    [--save STATE] [--resume STATE] [--config FILE]\n"
	"                    MODEL DATA ...\n"
	"       dl-train eval [-b BATCH] [-t THREADS] [--hold-out PART]\n"
	"                     [--config FILE] MODEL DATA ...\n"
	"       dl-train sample [-n TOKENS] [-p PROMPT] [-s SEED] "
	"[--temperature X]\n"
	"                       [--config FILE] MODEL\n"
	"       dl-train -h | -V\n"
	"  -L, --layers LAYERS       layers (4)\n"
	"  -H, --heads HEADS         attention heads (4)\n"
	"  -K, --kv-heads KV-HEADS   heads of keys and values (as many)\n"
	"  -d, --width WIDTH         numbers a token (128)\n"
	"  -F, --inner INNER         feed-forward width (8/3 of WIDTH)\n"
	"  -c, --context CONTEXT     tokens that the model sees (64)\n"
	"      --vocab N             vocabulary (256: bytes; above: "
	"16-bit ids)\n"
	"      --tied                the output head is the embedding\n"
	"  -f, --force               replace a model that is there\n"
	"  -s, --seed SEED           of weights, samples or text (0)\n"
	"  -o, --output MODEL        folder or file for the trained model\n"
	"      --steps N             train up to this step\n"
	"      --tokens N            train on so many tokens\n"
	"  -b, --batch BATCH         sequences a step (12)\n"
	"  -t, --threads THREADS     threads (1; 0 is one a CPU)\n"
	"      --slot N              which stream of samples (0)\n"
	"      --lr RATE             highest learning rate (0.003)\n"
	"      --warmup N            steps of warm-up (100)\n"
	"      --decay X             weight decay (0.1)\n"
	"      --clip X              longest gradient (1)\n"
	"      --step-time DURATION  make each step last that long\n"
	"      --eval N              tell the held-out loss every N steps\n"
	"      --hold-out PART       of the data, from its end (0.1)\n"
	"      --save STATE          keep all that training needs to go on\n"
	"      --resume STATE        go on from there\n"
	"      --config FILE         config.json (the model's own)\n"
	"  -n, --tokens TOKENS       bytes to write (200)\n"
	"  -p, --prompt PROMPT       text to begin with (an empty line)\n"
	"      --temperature X       0 takes the likeliest byte (0.8)\n"
	"  -h, --help  -V, --version  -q, --quiet  -v, --verbose\n";

/* What all ranks must have in common, this one has with rank 0. */
static int check_rank(
	const struct train_job *j, struct dl_ranks *ranks, struct dl_err *e)
{
	const uint64_t own[] = {j->m.size, j->corpus.tokens, dl_cpu_level()};
	uint64_t first[3];

	memcpy(first, own, sizeof own);
	dl_ranks_share(ranks, first, sizeof first);
	if (own[0] != first[0] || own[1] != first[1])
		return dl_fail(e, DL_DATA, "not the model or data of rank 0");
	if (own[2] != first[2])
		return dl_fail(e, DL_UNAVAILABLE,
			"not the CPU of rank 0: DL_CPU=%s has both work alike",
			dl_cpu_name(own[2] < first[2] ? own[2] : first[2]));
	return 0;
}

int train_job_open(struct train_job *j, const char *model, const char *config,
	char *const *data, size_t n, double held_out,
	const struct dl_training_options *o, struct dl_err *e)
{
	struct dl_config c;
	int rc;

	memset(j, 0, sizeof(*j));
	rc = dl_store_read_config(&c, config, model, e);
	if (!rc)
		rc = dl_corpus_read(&j->corpus, data, n, c.vocab > 256, c.vocab,
			held_out, e);
	rc = dl_ranks_agree(o->ranks, rc, e);
	if (!rc) {
		dl_llama_init(&j->m, &c);
		dl_training_init(&j->training, &j->m, &j->corpus, o);
		rc = check_rank(j, o->ranks, e);
		if (!rc && !dl_ranks_rank(o->ranks))
			rc = dl_store_read_model(
				&j->m, model, j->training.values, e);
		rc = dl_ranks_agree(o->ranks, rc, e);
	}
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
	static const struct cmd_command commands[] = {{"init", train_init},
		{"run", train_run}, {"eval", train_eval},
		{"sample", train_sample}};

	cmd_init("dl-train", usage);
	return cmd_dispatch(
		argc, argv, commands, sizeof commands / sizeof *commands);
}
