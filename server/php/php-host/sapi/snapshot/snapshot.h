/*
 * Snapshots: what the start of a script reads (boot_files.c), the request that it sees before Outboard\snapshot()
 * (boot_request_reads.c, tripwire.c), what the script has changed of it (boot_request.c), and how it continues
 * (snapshot_call.c, resume.c). One block per file; called by the hooks of engine/subjects.c.
 */
#ifndef OUTBOARD_SNAPSHOT_H
#define OUTBOARD_SNAPSHOT_H

#include "state/state.h"

/* snapshot/request_readers.c */
void outboard_request_readers_startup(void);

/* snapshot/request_fetches.c */
void outboard_request_fetches_begin(void);

/* snapshot/boot_request_reads.c */
void outboard_request_reads_start(const outboard_start *start);
void outboard_request_reads_end_all(void);
void outboard_request_reads_note_fork(void);
void outboard_request_reads_verify(void);
void outboard_request_reads_add(const char *array, const char *entry);
void outboard_request_reads_add_entry(const char *array, const char *entry);
void outboard_request_reads_add_variable(const char *name);
void outboard_request_reads_add_unnoticed(const char *array);
void outboard_request_reads_end(const HashTable *ignored);


/* snapshot/tripwire.c */
bool outboard_tripwire_begin(void);
void outboard_tripwire_end(void);
zval *outboard_tripwire_variable(const char *name);

/* snapshot/callers.c */
zend_string *outboard_caller_outside(const zend_string *file, uint32_t *line);

/* snapshot/boot_request.c */
void outboard_boot_request_describe(const outboard_start *start);
void outboard_boot_request_import_cookies(const outboard_start *start);
const char *outboard_boot_request_end(void);
void outboard_boot_request_apply(void);

/* snapshot/boot_files.c */
void outboard_boot_files_end(void);

/* snapshot/boot_engines.c */
void outboard_boot_engines_startup(const outboard_start *start);
void outboard_boot_engines_seed(void);

/* snapshot/snapshot.c */
enum { OUTBOARD_SNAPSHOT_KEY_MAX = 200 };
extern const zend_function_entry outboard_snapshot_functions[];

/* snapshot/snapshot_call.c */
extern const zend_function_entry outboard_snapshot_call_functions[];

/* snapshot/resume.c */
extern const zend_function_entry outboard_resume_functions[];
void outboard_resume(void);
bool outboard_resume_before_handler(outboard_request_state *state);

#endif
