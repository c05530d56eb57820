/*
 * The variables of host.h.
 */
#include "host.h"

outboard_host_facts outboard_host = {.debugger = -1};
outboard_work outboard_now;
