/*
 * The start of a request in worker mode, as within php_request_startup: the engine reads the request, and
 * warns in the log of what it cannot read.
 *
 * Called by request_state.c when the request's state is active. Invariant: no PHP code that the boot has
 * registered runs while the request is read, and none handles an error until the script's handler is
 * called; a request that could not be started has failed, and its handler is not called.
 */
#include "state/state.h"

/* What is set aside. It is on the coroutine's stack, because the start of a session may wait. */
typedef struct {
	zend_execute_data *frame;
	zval error_handler;
	zval exception_handler;
	bool upload_progress;
} boot_code;

/* php-fpm has no handler of a session at this time but one of an extension. */
static bool has_session_handler_of_script(void)
{
	return PS(mod) && strcmp(PS(mod)->s_name, "user") == 0;
}

static void set_aside(boot_code *code)
{
	OUTBOARD_ASSERT(!PG(during_request_startup) && !EG(exception));
	code->frame = EG(current_execute_data);
	EG(current_execute_data) = NULL;
	ZVAL_COPY_VALUE(&code->error_handler, &EG(user_error_handler));
	ZVAL_UNDEF(&EG(user_error_handler));
	ZVAL_COPY_VALUE(&code->exception_handler, &EG(user_exception_handler));
	ZVAL_UNDEF(&EG(user_exception_handler));
	code->upload_progress = PS(rfc1867_enabled);
	PS(rfc1867_enabled) &= !has_session_handler_of_script();
	PG(during_request_startup) = true;
}

static void end_reading(const boot_code *code)
{
	PG(during_request_startup) = false;
	PS(rfc1867_enabled) = code->upload_progress;
	EG(current_execute_data) = code->frame;
}

static void put_back(const boot_code *code)
{
	/* The boot's handler of sessions may have set another. */
	zval_ptr_dtor(&EG(user_error_handler));
	zval_ptr_dtor(&EG(user_exception_handler));
	ZVAL_COPY_VALUE(&EG(user_error_handler), &code->error_handler);
	ZVAL_COPY_VALUE(&EG(user_exception_handler), &code->exception_handler);
}

/*
 * The buffer starts with two pages and grows by as much (php_output_handler_init). A request that
 * waits before it writes does not need them.
 */
static void shrink_output_buffer(void)
{
	php_output_handler *active = php_output_get_active_handler();
	if (active && active->buffer.used == 0 && outboard_host.concurrency > OUTBOARD_FEW_COROUTINES) {
		active->buffer.size = 64;
		active->buffer.data = erealloc(active->buffer.data, active->buffer.size);
	}
}

/* A function of PHP code; php-fpm has none before the script. */
static bool is_of_script(const char *name)
{
	const zend_function *function = zend_hash_str_find_ptr_lc(EG(function_table), name, strlen(name));
	return strstr(name, "::") || (function && function->type == ZEND_USER_FUNCTION);
}

/*
 * As php_request_startup in main.c: headers and buffers that the ini files set for every request.
 */
static void begin_output(void)
{
	if (PG(expose_php)) {
		sapi_add_header(SAPI_PHP_VERSION_HEADER, sizeof(SAPI_PHP_VERSION_HEADER) - 1, 1);
	}
	const char *output_handler = OUTBOARD_OUTPUT_HANDLER();
	if (output_handler && output_handler[0]) {
		zval handler;
		/* With the warning of a function that does not exist. */
		ZVAL_STRING(&handler, is_of_script(output_handler) ? "" : output_handler);
		php_output_start_user(&handler, 0, PHP_OUTPUT_HANDLER_STDFLAGS);
		zval_ptr_dtor(&handler);
	} else if (PG(output_buffering)) {
		php_output_start_user(NULL, PG(output_buffering) > 1 ? PG(output_buffering) : 0,
			PHP_OUTPUT_HANDLER_STDFLAGS);
		shrink_output_buffer();
	} else if (PG(implicit_flush)) {
		php_output_set_implicit_flush(1);
	}
}

static void read_request(outboard_request_state *state)
{
	(void) state;
	php_output_activate();
	sapi_activate();
	begin_output();
	outboard_superglobals_import();
	outboard_zlib_begin();
}

static void start_session(outboard_request_state *state)
{
	(void) state;
	php_session_start();
}

void outboard_request_start(outboard_request_state *state)
{
	boot_code code;
	set_aside(&code);
	outboard_protected_step(read_request, state);
	end_reading(&code);
	OUTBOARD_ASSERT(Z_ISUNDEF(EG(user_error_handler)) && Z_ISUNDEF(EG(user_exception_handler)));
	OUTBOARD_RUN_HOOKS(request_read);
	if (outboard_has_session() && PS(auto_start) && state->result.outcome == OUTBOARD_FINISHED) {
		outboard_protected_step(start_session, state);
	}
	put_back(&code);
}
