/*
 * What a program says of its use: all of it, or what concerns one command.
 */
#ifndef CMD_USAGE_H
#define CMD_USAGE_H

/*
 * Prints usage: lines "usage: PROGRAM COMMAND ..." and, as far in, "PROGRAM
 * COMMAND ..." and what goes on farther in; then options, under headings such
 * as "COMMAND, COMMAND:" and "all:", or under none when they are for all. With
 * a command, not NULL, only what concerns it.
 */
void usage_print(const char *usage, const char *command);

#endif
