/*
 * Changes of the process that PHP does not undo, and its end. One block per file.
 */
#ifndef OUTBOARD_PROCESS_H
#define OUTBOARD_PROCESS_H

#include "interpose.h"
#include "kept.h"
#include "shim.h"

/* process/mapping_changes.c */
void outboard_mapping_changes_begin(void);

/* process/changes.c */
void outboard_process_changes_startup(void);
void outboard_process_changes_accept(void);
void outboard_process_changes_revert(void);
void outboard_process_changes_undo(void);
void outboard_process_change_permanent(void);
void outboard_process_change_identity(void);
void outboard_process_change_signals(void);
void outboard_process_change_signal(int number);
bool outboard_process_hides_children(void);
void outboard_process_change_limits(void);
void outboard_process_change_priority(void);

/* process/calls.c */
bool outboard_holds_semaphores(void);

/* process/denied_files.c */
void outboard_denied(outboard_denied_use use, const char *path);
/* The result of a call, after a look at its error. */
#define OUTBOARD_UNLESS_DENIED(call, use, path) __extension__ ({ \
	const int result_ = (call); \
	if (UNEXPECTED(result_ < 0 && errno == EACCES)) { \
		outboard_denied(use, path); \
	} \
	result_; \
})

/* process/native_calls.c */
void outboard_native_watch(void);

/* process/crash.c */
void outboard_crash_startup(void);

#endif
