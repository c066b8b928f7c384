/* dl-sim: what a run would do, in virtual time. */

#include "cmd/cmd.h"
#include "cmd/sim.h"

static const char usage[] =
	"usage: dl-sim fleet [-m M] [-t TIMES] [-n P] [-H H] [--tau TAU]\n"
	"                    [-k K] [--grace GRACE] [--late LATE]\n"
	"                    [--apply APPLY] [--wait] [--below-quorum BELOW]\n"
	"                    [--jitter J] [--delay T] [--transfer T]\n"
	"                    [--merge T] [--syncers S] [--liars N]\n"
	"                    [--deaths T[:DOWN]] [--cuts T[:DOWN]]\n"
	"                    [--crashes T[:DOWN]] [--rounds N] [--steps N]\n"
	"                    [--time T] [--seed N]\n"
	"  -m, --learners M        how many learners (8)\n"
	"  -t, --step-time TIMES   of a step: T,T,... in turn, or MEAN+SPREAD "
	"(1s)\n"
	"  -n, --fragments P       how many fragments (24)\n"
	"  -H, --h H               steps between rounds of a fragment (24)\n"
	"      --tau TAU           overlap, steps (2)\n"
	"  -k, --quorum K          reports that close a round (1)\n"
	"      --grace GRACE       none, adaptive or a time (adaptive)\n"
	"      --late LATE         drop, next or now (drop)\n"
	"      --apply APPLY       overwrite, carry or blend:A (overwrite)\n"
	"      --wait              lock-step: no jumps, wait for the network\n"
	"      --below-quorum BELOW  wait or merge:T (wait)\n"
	"      --jitter J          deviation of a step's time, relative "
	"(0.05)\n"
	"      --delay T           of a message, each way (20ms)\n"
	"      --transfer T        of a fragment, each way (50ms)\n"
	"      --merge T           of a fragment, with the commit (10ms)\n"
	"      --syncers S         that share the fragments (1)\n"
	"      --liars N           learners of which some words are lies (0)\n"
	"      --deaths T[:DOWN]   mean time between a learner's deaths, and "
	"down\n"
	"      --cuts T[:DOWN]     ... between a link's cuts\n"
	"      --crashes T[:DOWN]  ... between a syncer's crashes\n"
	"      --rounds N  --steps N  --time T\n"
	"                          the end, whichever comes first (1000 "
	"steps)\n"
	"      --seed N            other numbers, other accidents (1)\n"
	"  -h, --help  -V, --version  -q, --quiet  -v, --verbose\n";

static const struct cmd_command commands[] = {
	{"fleet", sim_fleet},
};

int main(int argc, char **argv)
{
	cmd_init("dl-sim", usage);
	return cmd_dispatch(
		argc, argv, commands, sizeof commands / sizeof *commands);
}
