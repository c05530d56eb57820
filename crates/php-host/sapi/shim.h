/*
 * Declarations that the files of the shim share, one block per file.
 */
#ifndef OUTBOARD_SHIM_H
#define OUTBOARD_SHIM_H

#include "compat.h"
#include "outboard.h"

/* request/request.c: the request in progress, NULL between requests. */
extern const outboard_request *outboard_current;
extern outboard_result *outboard_current_result;
void outboard_describe_request(const outboard_request *request);

/* Replaces the handler of a function; returns the original one, or NULL without such a function. */
static inline zif_handler outboard_wrap(const char *name, zif_handler handler)
{
	zend_internal_function *function =
		zend_hash_str_find_ptr(CG(function_table), name, strlen(name));
	zif_handler original = NULL;
	if (function && function->type == ZEND_INTERNAL_FUNCTION) {
		original = function->handler;
		function->handler = handler;
	}
	return original;
}

static inline zend_class_entry *outboard_class(const char *name)
{
	return zend_hash_str_find_ptr(CG(class_table), name, strlen(name));
}

/* request/handled.c */
void outboard_handled_hook(void);
bool outboard_is_handled(void);

/* request/script.c */
void outboard_script_hook(void);
int outboard_script_run(const outboard_request *request);
void outboard_script_enter(const outboard_request *request);

/* request/output.c */
size_t outboard_ub_write(const char *bytes, size_t len);
void outboard_flush(void *exchange);
void outboard_log_message(const char *message, int severity);

/* request/headers.c */
int outboard_send_headers(sapi_headers_struct *headers);
bool outboard_send_interim(int status);

/* request/input.c */
size_t outboard_read_post(char *buffer, size_t len);
char *outboard_read_cookies(void);
void outboard_input_reset(void);

/* request/variables.c */
typedef void (*outboard_variable_callback)(
	zend_string *name, const char *value, size_t value_len, void *arg);
void outboard_variables_each(outboard_variable_callback callback, void *arg);
void outboard_variables_each_header(outboard_variable_callback callback, void *arg);
void outboard_variables_startup(void);
void outboard_variables_hook(void);
void outboard_register_server_variables(zval *target);
char *outboard_getenv(const char *name, size_t name_len);
const outboard_str *outboard_header(const char *name, size_t name_len);

/* request/user_ini.c */
void outboard_user_ini_startup(void);
void outboard_user_ini_activate(void);

/* request/time_limit.c */
void outboard_time_limit_hook(void);
void outboard_time_limit_prepare(void);
void outboard_time_limit_begin(void);
void outboard_time_limit_end(void);

/* api/functions.c */
extern const zend_function_entry outboard_functions[];

/* opcache/opcache.c */
void outboard_opcache_hook(void);
bool outboard_is_opcache_request(const outboard_request *request);
void outboard_opcache_show(void);

/* opcache/users.c */
void outboard_opcache_users_startup(void);

/* snapshot/boot_files.c */
void outboard_boot_files_end(void);

/* snapshot/snapshot.c */
enum { OUTBOARD_SNAPSHOT_KEY_MAX = 200 };
extern const zend_function_entry outboard_snapshot_functions[];

/* api/page_cache.c */
extern const zend_function_entry outboard_page_cache_functions[];

/* tracing/span.c */
enum { OUTBOARD_MAX_ATTRIBUTES = 32 };
typedef struct {
	uint64_t start_us;
	uint32_t id;
	uint32_t parent;
} outboard_span;
typedef struct {
	outboard_str texts[2 + 2 * OUTBOARD_MAX_ATTRIBUTES];
	zend_string *values[OUTBOARD_MAX_ATTRIBUTES];
	size_t count;
} outboard_span_texts;
extern uint32_t outboard_open_span; /* that of the running code; 0: none */
extern const zend_function_entry outboard_span_functions[];
bool outboard_span_begin(outboard_span *span);
uint64_t outboard_span_us(const outboard_span *span);
void outboard_span_attribute(outboard_span_texts *texts, const char *key, size_t key_len, zend_string *value);
void outboard_span_end(const outboard_span *span, const char *name, size_t name_len, bool failed, outboard_span_texts *texts);
void outboard_span_abandon(const outboard_span *span);

/* tracing/database_rows.c */
zend_long outboard_rows_of_mysqli(zval *subject, zval *result);
zend_long outboard_rows_of_pgsql(zval *result);

/* tracing/database_span.c */
void outboard_database_span_startup(void);

/* api/tasks.c */
extern const zend_function_entry outboard_task_functions[];

/* process/mapping_changes.c */
typedef struct {
	uintptr_t start;
	uintptr_t end;
	bool is_writable; /* it was made so */
	bool is_new; /* the kernel has chosen the addresses, so that nothing was there */
} outboard_mapping_change;

void outboard_mapping_changes_begin(void);
const outboard_mapping_change *outboard_mapping_changes(size_t *length);

/* process/changes.c */
extern bool outboard_process_is_tainted;
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

/* fork/children.c */
extern bool outboard_is_child;
void outboard_children_startup(void);
void outboard_children_reap(void);
void outboard_child_end(void);

/* worker/worker_script.c: NULL in classic mode. */
extern void *outboard_events;
extern uint32_t outboard_concurrency;
extern bool outboard_frankenphp;
extern const zend_function_entry outboard_worker_functions[];

/* snapshot/resume.c */
extern const zend_function_entry outboard_resume_functions[];
extern const zend_function_entry outboard_frankenphp_functions[];

/* worker/loop.c: whether this process handles one request and exits. */
bool outboard_is_fork(void);

/* api/primitives.c */
extern const zend_function_entry outboard_engine_functions[];

/* api/request_functions.c */
extern const zend_function_entry outboard_request_functions[];

/* api/kv.c */
extern const zend_function_entry outboard_kv_functions[];
void outboard_kv_hook(void);

/* waiting/waiting.c */
extern zend_class_entry *outboard_connection_in_use_class;
void outboard_waiting_startup(void);

/* sanitizer.c */
extern const zend_function_entry outboard_sanitizer_functions[];
void outboard_sanitizer_prepare(void);
void outboard_sanitizer_startup(void);

/* request/backtrace.c */
void outboard_backtrace_hook(void);

#endif
