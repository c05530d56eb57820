/*
 * Processes that are forked: for one request, and by a script. One block per file.
 * Called by the hooks of engine/subjects.c, and for programs.
 */
#ifndef OUTBOARD_FORK_H
#define OUTBOARD_FORK_H

#include "coroutine/coroutine.h"

/* fork/children.c */
void outboard_children_startup(void);
void outboard_children_reap(void);
void outboard_child_end(void);
void outboard_child_code_ended(void);
void outboard_child_take_root(void);

/* fork/one_shot.c */
void outboard_one_shot_prepare(void);
void outboard_one_shot_begin(void);
void outboard_one_shot_pin_resources(void);
void outboard_one_shot_end(void);

/* fork/reopen.c */
void outboard_reopen_files(void);

#endif
