/*
 * The request that a script sees before Outboard\snapshot(): its reads (boot_request_reads.c, tripwire.c), and what the script
 * has changed of it (boot_request.c). Called by worker_script.c and loop.c.
 */
#ifndef OUTBOARD_BOOT_REQUEST_H
#define OUTBOARD_BOOT_REQUEST_H

#include "shim.h"

/* snapshot/request_readers.c */
void outboard_request_readers_startup(void);

/* snapshot/request_fetches.c */
void outboard_request_fetches_begin(void);

/* snapshot/boot_request_reads.c */
extern bool outboard_request_reads_recording;
void outboard_request_reads_begin(bool has_tripwire);
void outboard_request_reads_add(const char *array, const char *entry);
void outboard_request_reads_add_entry(const char *array, const char *entry);
void outboard_request_reads_add_variable(const char *name);
void outboard_request_reads_add_unnoticed(const char *array);
void outboard_request_reads_end(const HashTable *ignored);
void outboard_request_reads_verify(void);

/* snapshot/tripwire.c */
bool outboard_tripwire_begin(void);
void outboard_tripwire_end(void);
zval *outboard_tripwire_variable(const char *name);

/* snapshot/callers.c */
zend_string *outboard_caller_outside(const zend_string *file, uint32_t *line);

/* snapshot/boot_request.c */
void outboard_boot_request_describe(const outboard_request *request);
void outboard_boot_request_import_cookies(void);
bool outboard_boot_request_is_classic(void);
const char *outboard_boot_request_end(void);
void outboard_boot_request_apply(void);

#endif
