/*
 * Functions of PHP that the host adds. One block per file; used by engine/.
 */
#ifndef OUTBOARD_API_H
#define OUTBOARD_API_H

#include "shim.h"

/* api/functions.c */
extern const zend_function_entry outboard_functions[];
extern const zend_function_entry outboard_frankenphp_functions[];

/* api/page_cache.c */
extern const zend_function_entry outboard_page_cache_functions[];

/* api/tasks.c */
extern const zend_function_entry outboard_task_functions[];

/* api/primitives.c */
extern const zend_function_entry outboard_engine_functions[];

/* api/request_functions.c */
extern const zend_function_entry outboard_request_functions[];

/* api/frankenphp.c */
void outboard_frankenphp_add(const outboard_start *start);

/* api/kv.c */
extern const zend_function_entry outboard_kv_functions[];
void outboard_kv_hook(void);

#endif
