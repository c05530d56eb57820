/*
 * A request as PHP sees it: its script, variables, body, head, limits. One block per file.
 * Called by engine/module.c, state/ and worker/.
 */
#ifndef OUTBOARD_REQUEST_H
#define OUTBOARD_REQUEST_H

#include "shim.h"

/* request/request.c */
void outboard_describe_request(const outboard_request *request);

/* request/handled.c */
void outboard_handled_hook(void);
bool outboard_is_handled(void);

/* request/script.c */
void outboard_script_hook(void);
int outboard_script_run(const outboard_request *request);
void outboard_script_enter(const outboard_request *request);

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

/* request/backtrace.c */
void outboard_backtrace_hook(void);
void outboard_backtrace_at(const void *frame, uint32_t slot, uint32_t generation);

#endif
