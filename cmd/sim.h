/*
 * The jobs of dl-sim, one a file: argv[0] is the program, the job's name is
 * left out. They return the exit status.
 */
#ifndef CMD_SIM_H
#define CMD_SIM_H

int sim_bandwidth(int argc, char **argv);
int sim_fleet(int argc, char **argv);
int sim_goodput(int argc, char **argv);
int sim_plan(int argc, char **argv);

#endif
