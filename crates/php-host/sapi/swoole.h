/*
 * Programs written for Swoole: what the files swoole_*.c share among themselves and with the loop.
 */
#ifndef OUTBOARD_SWOOLE_H
#define OUTBOARD_SWOOLE_H

#include "coroutine.h"

/* swoole_module.c: whether the script of this process is such a program. */
extern bool outboard_is_swoole;
extern bool outboard_swoole_is_starting; /* what is mapped from here on is this process's workers' alone */
extern bool outboard_swoole_is_worker; /* from the server's start on */
void outboard_swoole_add_module(void);
void outboard_swoole_boot(void);
void outboard_swoole_end(void);

/* worker_script.c */
void outboard_begin_handling(void);
bool outboard_serve_or_perform(zval *handler, enum outboard_serve_mode mode);

/* swoole_coroutine.c */
extern const zend_function_entry outboard_swoole_coroutine_functions[];
void outboard_swoole_coroutine_startup(void);
void outboard_swoole_coroutine_enter(void);
void outboard_swoole_coroutine_leave(void);

/* swoole_http.c */
extern const zend_function_entry outboard_swoole_http_functions[];
void outboard_swoole_http_startup(void);
void outboard_swoole_answer(zval *handler, const outboard_event *event);
void outboard_swoole_cancel(void *exchange);

/* swoole_memory.c: memory that the processes of the program share; zeroed, NULL when there is none. */
void *outboard_swoole_share(size_t size);
void outboard_swoole_unshare(void *memory, size_t size);
void outboard_swoole_lock(uint32_t *word);
bool outboard_swoole_try_lock(uint32_t *word);
void outboard_swoole_unlock(uint32_t *word);

/* swoole_table.c, swoole_atomic.c: classes. */
void outboard_swoole_table_startup(void);
void outboard_swoole_atomic_startup(void);

#endif
