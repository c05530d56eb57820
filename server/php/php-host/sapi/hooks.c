/*
 * Where the lists of hooks.h are; engine/module.c sets it first of all.
 */
#include "hooks.h"

const outboard_hooks *outboard_stations;
