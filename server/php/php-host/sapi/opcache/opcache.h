/*
 * OPcache as a server needs it. One block per file; called by the hooks of engine/subjects.c.
 */
#ifndef OUTBOARD_OPCACHE_H
#define OUTBOARD_OPCACHE_H

#include "shim.h"

/* opcache/opcache.c */
void outboard_opcache_hook(void);
bool outboard_opcache_answer(const outboard_request *request);

/* opcache/users.c */
void outboard_opcache_users_startup(void);

/* opcache/clock.c */
void outboard_opcache_clock_find(const outboard_start *start);
void outboard_opcache_clock_set(const outboard_request *request);

#endif
