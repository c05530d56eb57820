/*
 * The life cycle of a worker script: boots it, handles requests when it calls for them, ends it.
 * Called by the worker (src/worker_script.rs); calls loop.c.
 */
#include "connections/connections.h"
#include "swoole/swoole.h"
#include "snapshot/boot_request.h"
#include "runtime.h"
#include "ext/spl/spl_exceptions.h"
#include "ext/standard/basic_functions.h"

void *outboard_events;
uint32_t outboard_concurrency;
bool outboard_frankenphp;

static bool is_handling;
static bool one_shot;

/* From here on the worker handles requests. In a zygote this returns only in the forks. */
void outboard_begin_handling(void)
{
	if (is_handling) {
		return;
	}
	is_handling = true;
	outboard_request_reads_end(NULL);
	php_output_end_all();
	/* Otherwise each fork would print the buffer's contents. */
	fflush(stdout);
	outboard_boot_files_end();
	outboard_request_state_end_boot();
	outboard_reset_baseline();
	if (outboard_rs_is_forking(outboard_events)) {
		outboard_one_shot_prepare();
	}
	outboard_connections_close();
	outboard_rewind_mark();
	if (outboard_rs_snapshot(outboard_events)) {
		/* A worker that was just forked returns to the mark, as after a request. */
		if (!outboard_rs_is_rewound(outboard_events)) {
			outboard_rewind();
		}
		one_shot = true;
		outboard_forked();
	}
	outboard_rs_ready(outboard_events);
}

static bool can_handle_requests(void)
{
	if (!outboard_events || outboard_boot_request_is_classic()) {
		zend_throw_exception(spl_ce_RuntimeException,
			"frankenphp_handle_request() called while not in worker mode", 0);
		return false;
	}
	if (outboard_running_state()) {
		zend_throw_exception(spl_ce_RuntimeException, "a request is being handled already", 0);
		return false;
	}
	return true;
}

/* In a worker of the task pool every request is a task, whatever handler the script passes. */
bool outboard_serve_or_perform(zval *handler, enum outboard_serve_mode mode)
{
	const char *tasks = getenv("OUTBOARD_TASK_WORKER");
	zval perform;
	bool continues;
	if (!tasks || strcmp(tasks, "1") != 0) {
		return outboard_serve_requests(handler, mode);
	}
	ZVAL_STRING(&perform, "Outboard\\Engine\\perform");
	continues = outboard_serve_requests(&perform, mode == OUTBOARD_SERVE_ONE ? mode : OUTBOARD_SERVE_ALL);
	zval_ptr_dtor(&perform);
	return continues;
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_handle, 0, 1, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, handler, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

PHP_FUNCTION(outboard_handle_request)
{
	zend_fcall_info info;
	zend_fcall_info_cache cache;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_FUNC(info, cache)
	ZEND_PARSE_PARAMETERS_END();
	if (can_handle_requests()) {
		outboard_begin_handling();
		RETURN_BOOL(outboard_serve_or_perform(&info.function_name,
			outboard_concurrency == 1 ? OUTBOARD_SERVE_ONE : OUTBOARD_SERVE_ALL));
	}
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_serve, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, handler, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

/* Handles requests with the handler's results as responses, until the worker is to stop. */
PHP_FUNCTION(outboard_serve)
{
	zend_fcall_info info;
	zend_fcall_info_cache cache;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_FUNC(info, cache)
	ZEND_PARSE_PARAMETERS_END();
	if (can_handle_requests()) {
		outboard_begin_handling();
		while (outboard_serve_or_perform(&info.function_name, OUTBOARD_SERVE_RETURNED)) {
		}
	}
}

/* Whether the next call for a request is the snapshot. */
static bool is_booting(void)
{
	return outboard_events && !is_handling && outboard_rs_is_forking(outboard_events);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_snapshot, 0, 0, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, ignored_reads, IS_ARRAY, 0, "[]")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, max_age, IS_LONG, 0, "0")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, refused_because, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

/*
 * The script continues after this call once for each request, from the same memory. In classic mode the
 * gateway learns that the script could be booted once.
 */
PHP_FUNCTION(outboard_snapshot)
{
	outboard_event event = {0};
	HashTable *ignored = NULL;
	zend_long max_age_s = 0;
	char *refused_because = NULL;
	size_t refused_because_len = 0;
	ZEND_PARSE_PARAMETERS_START(0, 3)
		Z_PARAM_OPTIONAL
		Z_PARAM_ARRAY_HT(ignored)
		Z_PARAM_LONG(max_age_s)
		Z_PARAM_STRING_OR_NULL(refused_because, refused_because_len)
	ZEND_PARSE_PARAMETERS_END();
	if (max_age_s < 0) {
		zend_argument_value_error(2, "must be 0 or more seconds");
		return;
	}
	if (!outboard_events && outboard_current_result) {
		outboard_current_result->takes_snapshot = true;
	}
	if (!is_booting()) {
		return;
	}
	outboard_tripwire_end();
	const char *refusal = outboard_boot_request_end();
	if (refusal || refused_because) {
		refusal ? outboard_rs_refuse_snapshot(outboard_events, refusal, strlen(refusal))
			: outboard_rs_refuse_snapshot(outboard_events, refused_because, refused_because_len);
		zend_throw_unwind_exit();
		return;
	}
	outboard_rs_boot_max_age(max_age_s);
	outboard_request_reads_end(ignored);
	outboard_begin_handling();
	while (event.kind != OUTBOARD_REQUEST && event.kind != OUTBOARD_STOP) {
		outboard_rs_next(outboard_events, true, true, &event);
	}
	if (event.kind == OUTBOARD_STOP) {
		zend_throw_unwind_exit();
		return;
	}
	outboard_begin_main_request(&event);
	if (outboard_main_script.state->result.outcome != OUTBOARD_FINISHED) {
		zend_throw_unwind_exit();
		return;
	}
	outboard_resume();
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_is_worker, 0, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

PHP_FUNCTION(outboard_is_worker)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_BOOL(outboard_events && !outboard_boot_request_is_classic());
}

PHP_FUNCTION(outboard_is_booting)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_BOOL(is_booting());
}

const zend_function_entry outboard_worker_functions[] = {
	ZEND_NS_FENTRY("Outboard", handle_request, ZEND_FN(outboard_handle_request), arginfo_handle, 0)
	ZEND_NS_FENTRY("Outboard", snapshot, ZEND_FN(outboard_snapshot), arginfo_snapshot, 0)
	ZEND_NS_FENTRY("Outboard", is_worker, ZEND_FN(outboard_is_worker), arginfo_is_worker, 0)
	ZEND_NS_FENTRY("Outboard", is_booting, ZEND_FN(outboard_is_booting), arginfo_is_worker, 0)
	ZEND_NS_FENTRY("Outboard", serve, ZEND_FN(outboard_serve), arginfo_serve, 0)
	PHP_FE_END
};

static const zend_function_entry handle_request_as_frankenphp[] = {
	ZEND_FENTRY(frankenphp_handle_request, ZEND_FN(outboard_handle_request), arginfo_handle, 0)
	PHP_FE_END
};

static void register_constant(const char *name, zend_long value)
{
	zend_register_long_constant(name, strlen(name), value, CONST_PERSISTENT, 0);
}

/* The memory of requests does not exist yet; without OPcache the engine keeps new strings there. */
static void add_frankenphp(void)
{
	zend_interned_strings_switch_storage(false);
	/* opcache reads the module of every internal function (zend_optimizer.c). */
	EG(current_module) = zend_hash_str_find_ptr(&module_registry, ZEND_STRL("outboard"));
	zend_register_functions(NULL, handle_request_as_frankenphp, NULL, MODULE_PERSISTENT);
	zend_register_functions(NULL, outboard_frankenphp_functions, NULL, MODULE_PERSISTENT);
	EG(current_module) = NULL;
	register_constant("FRANKENPHP_LOG_LEVEL_DEBUG", -4);
	register_constant("FRANKENPHP_LOG_LEVEL_INFO", 0);
	register_constant("FRANKENPHP_LOG_LEVEL_WARN", 4);
	register_constant("FRANKENPHP_LOG_LEVEL_ERROR", 8);
	zend_interned_strings_switch_storage(true);
}

/* Compiles and runs PHP code of the host (runtime/, embedded by build.rs). */
void outboard_run_source(const unsigned char *text, size_t len, const char *name)
{
	zend_string *source = zend_string_init((const char *) text, len, false);
	zend_op_array *code =
		zend_compile_string(source, name, ZEND_COMPILE_POSITION_AFTER_OPEN_TAG);
	zend_string_release(source);
	if (code) {
		zval result;
		zend_execute(code, &result);
		zval_ptr_dtor(&result);
		zend_destroy_static_vars(code);
		destroy_op_array(code);
		efree(code);
	}
}

static void run_configured(void)
{
	zval function;
	zval result;
	ZVAL_STRING(&function, "Outboard\\Engine\\run_configured");
	if (call_user_function(NULL, NULL, &function, &result, 0, NULL) == SUCCESS) {
		zval_ptr_dtor(&result);
	}
	zval_ptr_dtor(&function);
	if (EG(exception)) {
		zend_exception_error(EG(exception), E_ERROR);
	}
}

/* The file of the script while it runs. */
static const zend_file_handle *script_file;

/* The stream that it was compiled from, or NULL. */
const void *outboard_script_stream(void)
{
	return script_file && script_file->type == ZEND_HANDLE_STREAM ? script_file->handle.stream.handle : NULL;
}

static void boot(const char *script)
{
	zend_file_handle file;
	zend_stream_init_filename(&file, script);
	file.primary_script = 1;
	script_file = &file;
	outboard_run_source(outboard_runtime_php, outboard_runtime_php_len, "outboard:runtime");
	if (outboard_is_swoole) {
		outboard_swoole_boot();
		/* As for the command line's script (do_cli in php_cli.c): its first line may name PHP. */
		CG(skip_shebang) = true;
	}
	if (php_execute_script(&file) && !is_handling && !EG(exit_status)) {
		run_configured();
	}
	if (outboard_is_swoole) {
		outboard_swoole_end();
	}
	zend_destroy_file_handle(&file);
	script_file = NULL;
}

/*
 * Runs the script until it ends. Returns false if it ended without a call for a request, or if the
 * engine has failed. `boot_request` is what a script of classic mode sees while it boots, else NULL.
 */
bool outboard_worker_script_run(const char *script, void *events, bool frankenphp, uint32_t concurrency,
	const char *state_report, const outboard_request *boot_request)
{
	volatile bool sound = false;
	outboard_concurrency = concurrency;
	outboard_events = events;
	outboard_frankenphp = frankenphp;
	outboard_doctor_startup(state_report);
	if (outboard_is_swoole) {
		outboard_swoole_add_module();
	} else if (frankenphp) {
		add_frankenphp();
	}
	zend_first_try {
		SG(server_context) = NULL;
		outboard_boot_request_describe(boot_request);
		SG(request_info).path_translated = (char *) script;
		SG(request_info).request_uri = (char *) script;
		outboard_time_limit_prepare();
		outboard_request_state_prepare_boot(boot_request != NULL);
		if (php_request_startup() == SUCCESS) {
			outboard_opcache_clock_find();
			SG(request_info).no_headers = 1;
			/* The boot has a request state, too: it may wait. */
			outboard_request_state_startup();
			outboard_coroutine_startup();
			outboard_connection_guard_startup();
			outboard_persistent_startup();
			outboard_connections_startup();
			outboard_reset_startup();
			if (boot_request) {
				outboard_boot_request_import_cookies();
				outboard_script_enter(boot_request);
			}
			if (outboard_rs_is_forking(events)) {
				outboard_request_reads_begin(boot_request != NULL);
			}
			boot(script);
			if (!is_handling) {
				outboard_tripwire_end();
				outboard_boot_files_end();
			}
			if (outboard_is_child) {
				outboard_child_end();
			}
			if (one_shot) {
				outboard_end_fork();
				outboard_rewind();
			} else {
				php_request_shutdown(NULL);
			}
			sound = is_handling;
		}
	} zend_end_try();
	fflush(stdout);
	return sound;
}
