/*
 * The engine's state of one request in worker mode: begins it, swaps it when another coroutine
 * runs, completes the response and ends it.
 *
 * Called by loop.c and coroutine.c. Invariants: exactly one request's state is in the engine at a
 * time; changes of that state end with the request.
 */
#include "state/state.h"
#include "ext/standard/basic_functions.h"

outboard_request_state outboard_boot_state;

static outboard_request_state *unused;
static zend_module_entry *session_module;
static zend_module_entry *filter_module;
static bool auto_start; /* session.auto_start */

/* Save handlers of the script: an array in 8.2, named members since; consecutive zvals in both. */
#define SESSION_HANDLERS (sizeof(ps_globals.mod_user_names) / sizeof(zval))

static zval *session_handler(php_ps_globals *session, size_t at)
{
	return (zval *) &session->mod_user_names + at;
}

/* Ends a session of the boot. Save handlers that the boot has set apply to all requests. */
static void end_session_of_boot(void)
{
	zval handlers[SESSION_HANDLERS];
	outboard_session_class class = OUTBOARD_SESSION_CLASS(&ps_globals);
	for (size_t i = 0; i < SESSION_HANDLERS; i++) {
		ZVAL_COPY(&handlers[i], session_handler(&ps_globals, i));
	}
	OUTBOARD_ADDREF_SESSION_CLASS(class);
	session_module->request_shutdown_func(MODULE_PERSISTENT, session_module->module_number);
	PS(auto_start) = false;
	session_module->request_startup_func(MODULE_PERSISTENT, session_module->module_number);
	PS(auto_start) = auto_start;
	for (size_t i = 0; i < SESSION_HANDLERS; i++) {
		ZVAL_COPY_VALUE(session_handler(&ps_globals, i), &handlers[i]);
	}
	OUTBOARD_SESSION_CLASS(&ps_globals) = class;
}

bool outboard_has_session(void)
{
	return session_module != NULL;
}

/*
 * Before php_request_startup. A worker script has no client whose session could be started, and each request
 * begins with a copy of the boot's state.
 */
void outboard_request_state_prepare_boot(bool has_request)
{
	auto_start = PS(auto_start);
	PS(auto_start) = auto_start && has_request;
}

/* Before the script boots; the boot's state becomes the active one. */
void outboard_request_state_startup(void)
{
	outboard_superglobals_startup();
	session_module = zend_hash_str_find_ptr(&module_registry, ZEND_STRL("session"));
	filter_module = zend_hash_str_find_ptr(&module_registry, ZEND_STRL("filter"));
	OUTBOARD_ASSERT(!outboard_now.state);
	outboard_now.state = &outboard_boot_state;
	outboard_zlib_startup();
	outboard_ini_strings_startup();
}

/* At the first call for a request. */
void outboard_request_state_end_boot(void)
{
	if (session_module) {
		end_session_of_boot();
	}
}

static void save(outboard_engine_state *engine)
{
	OUTBOARD_ASSERT(outboard_now.state && engine == &outboard_now.state->engine);
	memcpy(&engine->sapi, &sapi_globals, sizeof(sapi_globals));
	memcpy(&engine->output, &output_globals, sizeof(output_globals));
	memcpy(&engine->session, &ps_globals, sizeof(ps_globals));
	/* sapi_activate resets these copies without freeing them. */
	outboard_filter_save(&engine->filter);
	outboard_zlib_save(&engine->zlib);
	memcpy(engine->http_globals, PG(http_globals), sizeof(engine->http_globals));
	outboard_superglobals_save_armed(engine->armed);
	ZVAL_COPY_VALUE(&engine->error_handler, &EG(user_error_handler));
	engine->error_handler_reporting = EG(user_error_handler_error_reporting);
	engine->error_handlers = EG(user_error_handlers);
	engine->error_handlers_reporting = EG(user_error_handlers_error_reporting);
	ZVAL_COPY_VALUE(&engine->exception_handler, &EG(user_exception_handler));
	engine->exception_handlers = EG(user_exception_handlers);
	engine->shutdown_functions = BG(user_shutdown_function_names);
	engine->strtok_string = BG(strtok_string);
	engine->strtok_last = BG(strtok_last);
	engine->strtok_len = BG(strtok_len);
	engine->last_error_message = PG(last_error_message);
	engine->last_error_file = PG(last_error_file);
	engine->last_error_type = PG(last_error_type);
	engine->last_error_line = PG(last_error_lineno);
	engine->exit_status = EG(exit_status);
	engine->connection_status = PG(connection_status);
	engine->ignore_user_abort = PG(ignore_user_abort);
	engine->header_is_being_sent = PG(header_is_being_sent);
	engine->request = outboard_now.request;
	engine->result = outboard_now.result;
}

static void restore(const outboard_engine_state *engine)
{
	memcpy(&sapi_globals, &engine->sapi, sizeof(sapi_globals));
	memcpy(&output_globals, &engine->output, sizeof(output_globals));
	memcpy(&ps_globals, &engine->session, sizeof(ps_globals));
	outboard_filter_restore(&engine->filter);
	outboard_zlib_restore(&engine->zlib);
	memcpy(PG(http_globals), engine->http_globals, sizeof(engine->http_globals));
	outboard_superglobals_restore_armed(engine->armed);
	ZVAL_COPY_VALUE(&EG(user_error_handler), &engine->error_handler);
	EG(user_error_handler_error_reporting) = engine->error_handler_reporting;
	EG(user_error_handlers) = engine->error_handlers;
	EG(user_error_handlers_error_reporting) = engine->error_handlers_reporting;
	ZVAL_COPY_VALUE(&EG(user_exception_handler), &engine->exception_handler);
	EG(user_exception_handlers) = engine->exception_handlers;
	BG(user_shutdown_function_names) = engine->shutdown_functions;
	BG(strtok_string) = engine->strtok_string;
	BG(strtok_last) = engine->strtok_last;
	BG(strtok_len) = engine->strtok_len;
	PG(last_error_message) = engine->last_error_message;
	PG(last_error_file) = engine->last_error_file;
	PG(last_error_type) = engine->last_error_type;
	PG(last_error_lineno) = engine->last_error_line;
	EG(exit_status) = engine->exit_status;
	PG(connection_status) = engine->connection_status;
	PG(ignore_user_abort) = engine->ignore_user_abort;
	PG(header_is_being_sent) = engine->header_is_being_sent;
	outboard_now.request = engine->request;
	outboard_now.result = engine->result;
}

/* Restores the request's state; the superglobals of the state before go to `saved`. */
static void activate(outboard_request_state *state, zval *saved)
{
	OUTBOARD_ASSERT(state == &outboard_boot_state || state->exchange);
	bool has_unset = outboard_superglobals_exchange(saved, state->engine.superglobals);
	restore(&state->engine);
	outboard_now.state = state;
	if (has_unset) {
		outboard_superglobals_import_mentioned();
	}
}

/* Makes it the active state, and saves the one before. */
void outboard_request_state_enter(outboard_request_state *state)
{
	if (state != outboard_now.state) {
		save(&outboard_now.state->engine);
		activate(state, outboard_now.state->engine.superglobals);
	}
}

static void copy_zval_stack(zend_stack *to, const zend_stack *from)
{
	zend_stack_init(to, sizeof(zval));
	for (int i = 0; i < from->top; i++) {
		zval *handler = (zval *) from->elements + i;
		Z_TRY_ADDREF_P(handler);
		zend_stack_push(to, handler);
	}
}

/* Copies the boot's state, with which every request begins. */
static void prepare(outboard_request_state *state)
{
	const outboard_engine_state *boot = &outboard_boot_state.engine;
	outboard_engine_state *engine = &state->engine;
	memcpy(engine, boot, sizeof(*engine));
	memset(&engine->output, 0, sizeof(engine->output));
	for (int i = 0; i < 6; i++) {
		ZVAL_UNDEF(&engine->http_globals[i]);
	}
	for (int i = 0; i < OUTBOARD_SUPERGLOBALS; i++) {
		ZVAL_UNDEF(&engine->superglobals[i]);
		engine->armed[i] = false; /* until outboard_superglobals_import */
	}
	Z_TRY_ADDREF(engine->error_handler);
	Z_TRY_ADDREF(engine->exception_handler);
	copy_zval_stack(&engine->error_handlers, &boot->error_handlers);
	copy_zval_stack(&engine->exception_handlers, &boot->exception_handlers);
	zend_stack_init(&engine->error_handlers_reporting, sizeof(int));
	for (int i = 0; i < boot->error_handlers_reporting.top; i++) {
		zend_stack_push(&engine->error_handlers_reporting,
			(int *) boot->error_handlers_reporting.elements + i);
	}
	for (size_t i = 0; i < SESSION_HANDLERS; i++) {
		Z_TRY_ADDREF_P(session_handler(&engine->session, i));
	}
	OUTBOARD_ADDREF_SESSION_CLASS(OUTBOARD_SESSION_CLASS(&engine->session));
	memset(&engine->zlib, 0, sizeof(engine->zlib));
	engine->shutdown_functions = NULL;
	engine->strtok_string = NULL;
	engine->strtok_last = NULL;
	engine->strtok_len = 0;
	engine->last_error_message = NULL;
	engine->last_error_file = NULL;
	engine->last_error_type = 0;
	engine->exit_status = 0;
	engine->connection_status = PHP_CONNECTION_NORMAL;
	engine->header_is_being_sent = 0;
	engine->request = state->request;
	engine->result = &state->result;
}

outboard_request_state *outboard_request_state_begin(const outboard_request *request, void *exchange)
{
	outboard_request_state *state = unused;
	if (state) {
		unused = state->next;
	} else {
		state = pemalloc(sizeof(*state), 1);
	}
	memset(&state->result, 0, sizeof(*state) - offsetof(outboard_request_state, result));
	state->request = request;
	state->exchange = exchange;
	state->result.outcome = OUTBOARD_FINISHED;
	if (outboard_now.state != &outboard_boot_state) {
		outboard_request_state_enter(&outboard_boot_state);
	}
	OUTBOARD_ASSERT(outboard_now.state == &outboard_boot_state && exchange);
	save(&outboard_boot_state.engine);
	outboard_ini_strings_begin(state);
	prepare(state);
	activate(state, outboard_boot_state.engine.superglobals);
	outboard_now.span = 0;
	OUTBOARD_RUN_HOOKS(request_began, request);
	SG(server_context) = exchange;
	SG(request_info).no_headers = 0;
	SG(sapi_started) = 0;
	outboard_describe_request(request);
	outboard_request_start(state);
	return state;
}

/* A body that was read only through php://input is a stream in the engine's list. */
static void free_body(void)
{
	if (SG(request_info).request_body) {
		outboard_close_handles_of(SG(request_info).request_body);
		php_stream_close(SG(request_info).request_body);
		SG(request_info).request_body = NULL;
	}
}

static void free_state(void)
{
	outboard_superglobals_free();
	zval_ptr_dtor(&EG(user_error_handler));
	ZVAL_UNDEF(&EG(user_error_handler));
	zval_ptr_dtor(&EG(user_exception_handler));
	ZVAL_UNDEF(&EG(user_exception_handler));
	zend_stack_clean(&EG(user_error_handlers), (void (*)(void *)) zval_ptr_dtor, true);
	zend_stack_destroy(&EG(user_error_handlers_error_reporting));
	zend_stack_clean(&EG(user_exception_handlers), (void (*)(void *)) zval_ptr_dtor, true);
	if (BG(strtok_string)) {
		zend_string_release(BG(strtok_string));
		BG(strtok_string) = NULL;
	}
	if (PG(last_error_message)) {
		zend_string_release(PG(last_error_message));
		PG(last_error_message) = NULL;
	}
	if (PG(last_error_file)) {
		zend_string_release(PG(last_error_file));
		PG(last_error_file) = NULL;
	}
}

static void call_shutdown_functions(outboard_request_state *state)
{
	(void) state;
	php_call_shutdown_functions();
	php_free_shutdown_functions();
}

/*
 * As after exit() under php-fpm: what is left of all objects may be part of the response, as what Symfony's dd() has
 * collected is. The script cannot go on with them.
 */
static void destroy_objects(outboard_request_state *state)
{
	(void) state;
	outboard_host.is_tainted = true;
	outboard_host.has_exited = true;
	zend_objects_store_call_destructors(&EG(objects_store));
}

/* One at a time: after an error in a callback, outer buffers are not part of the response. */
static void end_buffers(outboard_request_state *state)
{
	(void) state;
	while (OG(active) && php_output_end() == SUCCESS && !EG(exception)) {
	}
	if (!EG(exception)) {
		php_output_end_all();
	}
}

static void end_session(outboard_request_state *state)
{
	(void) state;
	if (session_module) {
		session_module->request_shutdown_func(MODULE_PERSISTENT, session_module->module_number);
	}
}

static void send_head(outboard_request_state *state)
{
	(void) state;
	php_output_deactivate();
}

static void reset(outboard_request_state *state)
{
	OUTBOARD_RUN_HOOKS(request_ended);
	OUTBOARD_RUN_HOOKS(state_ended, state);
}

static void free_request(outboard_request_state *state)
{
	(void) state;
	if (filter_module) {
		filter_module->request_shutdown_func(MODULE_PERSISTENT, filter_module->module_number);
	}
	outboard_zlib_end();
	free_body();
	SG(post_read) = 1;
	sapi_deactivate();
	free_state();
}

/* When no code of the request runs any more that could spoil its response. */
void outboard_request_state_judge(outboard_request_state *state)
{
	state->result.handled = state->is_called && state->result.outcome == OUTBOARD_FINISHED && outboard_is_handled();
}

/*
 * Completes the response as php_request_shutdown does: shutdown functions, buffers, session, head.
 * The session is written before the end, because the client may send the next request right after.
 */
void outboard_request_state_complete(outboard_request_state *state)
{
	if (state->completed) {
		return;
	}
	OUTBOARD_ASSERT(state == outboard_now.state);
	state->completed = true;
	if (BG(user_shutdown_function_names)) {
		outboard_protected_step(call_shutdown_functions, state);
	}
	if (state->exited && outboard_host.exit_ends_script && state->coroutines == 1) {
		outboard_protected_step(destroy_objects, state);
	}
	outboard_protected_step(end_buffers, state);
	outboard_protected_step(end_session, state);
	outboard_protected_step(send_head, state);
	outboard_request_state_judge(state);
	BG(user_shutdown_function_names) = NULL;
}

void outboard_request_state_end(outboard_request_state *state)
{
	OUTBOARD_ASSERT(state == outboard_now.state && state != &outboard_boot_state);
	OUTBOARD_ASSERT(state->completed && state->coroutines == 0 && state != unused);
	outboard_protected_step(reset, state);
	outboard_protected_step(free_request, state);
	state->result.peak_memory_bytes = zend_memory_peak_usage(true);
	zend_memory_reset_peak_usage();
	outboard_request_state_abandon();
	outboard_ini_strings_end(state);
	state->next = unused;
	unused = state;
}

/* Drops the active state; the boot's takes its place. */
void outboard_request_state_abandon(void)
{
	zval rest[OUTBOARD_SUPERGLOBALS];
	activate(&outboard_boot_state, rest);
}
