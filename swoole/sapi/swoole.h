/*
 * Programs written for Swoole: what the files of this folder share among themselves and with the loop.
 */
#ifndef OUTBOARD_SWOOLE_H
#define OUTBOARD_SWOOLE_H

#include "worker/worker.h"

/* program.c */
typedef struct {
	bool is_starting; /* what is mapped from here on is this process's workers' alone */
	bool is_worker; /* from the server's start on */
} outboard_swoole_program;
extern outboard_swoole_program outboard_program;
void outboard_program_boot(void);
void outboard_program_end(void);
extern const zend_function_entry outboard_swoole_program_functions[];

/* module.c */
void outboard_program_add_module(const outboard_start *start);

/* coroutines.c */
extern const zend_function_entry outboard_swoole_coroutine_functions[];
extern const zend_function_entry outboard_swoole_short_functions[];
void outboard_swoole_coroutine_startup(void);
void outboard_swoole_coroutine_enter(void);
void outboard_swoole_coroutine_leave(void);
void outboard_program_forget_coroutines(void);

/* socket.c */
extern const zend_function_entry outboard_swoole_socket_functions[];
int outboard_socket_descriptor(zval *value);

/* process.c */
extern const zend_function_entry outboard_swoole_process_functions[];

/* http.c, http_request.c, http_response.c */
extern const zend_function_entry outboard_swoole_http_functions[];
extern const zend_function_entry outboard_swoole_http_request_functions[];
extern const zend_function_entry outboard_swoole_http_response_functions[];
void outboard_program_requests_startup(void);
void outboard_program_answer(zval *handler, const outboard_event *event);
void outboard_program_cancel(void *exchange);

/* server.c */
extern const zend_function_entry outboard_swoole_server_functions[];
void outboard_program_receive(void);

/* memory.c: memory that the processes of the program share; zeroed, NULL when there is none. */
void *outboard_swoole_share(size_t size);
void outboard_swoole_unshare(void *memory, size_t size);
void outboard_swoole_lock(uint32_t *word);
bool outboard_swoole_try_lock(uint32_t *word);
void outboard_swoole_unlock(uint32_t *word);
void outboard_swoole_free_orphan(uint32_t *word);
bool outboard_swoole_has_ended(uint32_t process);

/* shared.c: objects in such memory. */
#define OUTBOARD_SWOOLE_SHARED_BYTES 4096
zend_class_entry *outboard_swoole_declare_shared(zend_class_entry *class);
void *outboard_swoole_shared_of(zval *object);
bool outboard_swoole_try_for(bool (*step)(void *arg), void *arg, double seconds);

/* table.c, atomic.c, lock.c: classes. */
void outboard_swoole_table_startup(void);
void outboard_swoole_atomic_startup(void);
void outboard_swoole_lock_startup(void);

/* header_blocks.c */
void outboard_swoole_header_blocks_startup(void);

#endif
