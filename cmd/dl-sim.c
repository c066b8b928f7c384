/* dl-sim: what a run would do, in virtual time. */

#include "cmd/cmd.h"
#include "cmd/sim.h"

static const char usage[] =
	"usage: dl-sim fleet [-m M] [-t TIMES] [-n P] [-H H] [--tau TAU]\n"
	"                    [-k K] [--grace GRACE] [--late LATE]\n"
	"                    [--apply APPLY] [--wait] [--below-quorum BELOW]\n"
	"                    [--jitter J] [--delay T] [--transfer T]\n"
	"                    [--merge T] [--syncers S] [--liars N]\n"
	"                    [--deaths T[:DOWN]] [--kill LEARNER:AT:DOWN]\n"
	"                    [--cuts T[:DOWN]] [--crashes T[:DOWN]]\n"
	"                    [--rounds N] [--steps N] [--time T] [--seed N]\n"
	"                    [--tsv] [--json]\n"
	"       dl-sim goodput [--mode MODES] [--chips N,...] [-m M,...]\n"
	"                      [-k K] [-t T] [--slice N] [--interrupted T]\n"
	"                      [--spread S] [--scale-down T] [--scale-up T]\n"
	"                      [--return T] [--gather T]\n"
	"                      [--checkpoint T[:EVERY]] [--time T] [-r N]\n"
	"                      [--seed N] [--tsv] [--json]\n"
	"fleet:\n"
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
	"      --kill LEARNER:AT:DOWN  one of these deaths; may be said again\n"
	"      --cuts T[:DOWN]     ... between a link's cuts\n"
	"      --crashes T[:DOWN]  ... between a syncer's crashes\n"
	"      --rounds N  --steps N  --time T\n"
	"                          the end, whichever comes first (1000 "
	"steps)\n"
	"      --seed N            other numbers, other accidents (1)\n"
	"goodput:\n"
	"      --mode MODES        of rigid,elastic,decoupled (all)\n"
	"      --chips N,...       sizes of the system (150k,...,2.4M)\n"
	"  -m, --learners M,...    how many decoupled learners (8)\n"
	"  -k, --quorum K          it is up while so many train (1)\n"
	"  -t, --step-time T       of a step (5s)\n"
	"      --slice N           chips that come and go together (2000)\n"
	"      --interrupted T     mean time, a chip (365.25d)\n"
	"      --spread S          slices are up to that share slower (0)\n"
	"      --scale-down T      a learner loses a slice (22s)\n"
	"      --scale-up T        a learner takes slices in (16s)\n"
	"      --return T          until interrupted chips are back (67s)\n"
	"      --gather T          slices wait for others (110s)\n"
	"      --checkpoint T[:EVERY]\n"
	"                          rigid learners go back to one (0s)\n"
	"      --time T            how long (30d)\n"
	"  -r, --runs N            with other seeds, for errors (1)\n"
	"      --seed N            other failures (1)\n"
	"all:\n"
	"      --tsv  --json       the table's form\n"
	"  -h, --help  -V, --version  -q, --quiet  -v, --verbose\n";

static const struct cmd_command commands[] = {
	{"fleet", sim_fleet},
	{"goodput", sim_goodput},
};

int main(int argc, char **argv)
{
	cmd_init("dl-sim", usage);
	return cmd_dispatch(
		argc, argv, commands, sizeof commands / sizeof *commands);
}
