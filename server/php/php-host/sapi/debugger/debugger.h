/*
 * The debugger of PHP: the extension Xdebug, and its connection. Defined in debugger.c, used at the stations of hooks.h.
 */
#ifndef OUTBOARD_DEBUGGER_H
#define OUTBOARD_DEBUGGER_H

#include "hooks.h"

void outboard_debugger_choose(void);
void outboard_debugger_request(void);
bool outboard_debugger_connects(int fd, const void *caller);

#endif
