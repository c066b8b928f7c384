/*
 * The subcommands of dl-sync, each in a file of its own. argv[0] is the
 * subcommand's name.
 */
#ifndef CMD_DL_SYNC_H
#define CMD_DL_SYNC_H

int sync_serve(int argc, char **argv);
int sync_run(int argc, char **argv);
int sync_merge(int argc, char **argv);
int sync_attach(int argc, char **argv);
int sync_check(int argc, char **argv);
int sync_checkpoint(int argc, char **argv);
int sync_replay(int argc, char **argv);
int sync_end(int argc, char **argv);

#endif
