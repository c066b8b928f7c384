/*
 * Faults in the calls that change files: the n-th one fails, or is the last
 * thing the process does. The test is linked with --wrap for each call.
 */
#ifndef TESTS_STATE_FAULTS_H
#define TESTS_STATE_FAULTS_H

#include "base/mem.h"

enum fault { FAULT_NONE, FAULT_FAIL, FAULT_DIE };

/* Counts from here; call number at (from 1) gets the fault. */
void faults_arm(enum fault kind, int at);
/* Stops it; the number of calls since faults_arm. */
int faults_disarm(void);
/* Names of the calls since faults_arm, with the file's place: "fsync
 * rename:HEAD ..." */
const char *faults_log(void);

#endif
