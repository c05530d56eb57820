/*
 * What was changed since the last reset: reset.c and the files that track changes set it, the reset after a request clears it.
 */
#include "reset/reset.h"

uint32_t outboard_changes;
