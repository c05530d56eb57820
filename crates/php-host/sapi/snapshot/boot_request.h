/*
 * The request that a script sees before Outboard\snapshot(): its reads (boot_request_reads.c), and what the script
 * has changed of it (boot_request.c). Called by worker_script.c and loop.c.
 */
#ifndef OUTBOARD_BOOT_REQUEST_H
#define OUTBOARD_BOOT_REQUEST_H

#include "shim.h"

/* snapshot/boot_request_reads.c */
void outboard_request_reads_begin(void);
void outboard_request_reads_add(const char *array, const char *entry);
void outboard_request_reads_end(const HashTable *ignored);

/* snapshot/boot_request.c */
void outboard_boot_request_describe(const outboard_request *request);
void outboard_boot_request_import_cookies(void);
bool outboard_boot_request_is_classic(void);
const char *outboard_boot_request_end(void);
void outboard_boot_request_apply(void);

#endif
