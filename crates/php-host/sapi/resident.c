/*
 * The life of a resident script: boots it, hands it requests at its call for one, brings it to
 * its end. Called by the worker (src/resident.rs); calls loop.c for everything in between.
 */
#include "swoole.h"
#include "runtime.h"
#include "ext/spl/spl_exceptions.h"
#include "ext/standard/basic_functions.h"

void *outboard_events;
uint32_t outboard_concurrency;
bool outboard_frankenphp;

static bool answering;
static bool one_shot;

/* From here on the worker takes requests. In a zygote this returns in the forks only. */
void outboard_begin_answering(void)
{
	if (answering) {
		return;
	}
	answering = true;
	php_output_end_all();
	/* Forks would each print what is left in it. */
	fflush(stdout);
	outboard_visit_end_boot();
	outboard_reset_baseline();
	if (outboard_rs_snapshot(outboard_events)) {
		one_shot = true;
		outboard_forked();
	}
	outboard_rs_ready(outboard_events);
}

static bool is_resident(void)
{
	if (!outboard_events) {
		zend_throw_exception(spl_ce_RuntimeException,
			"frankenphp_handle_request() called while not in worker mode", 0);
		return false;
	}
	if (outboard_visit_here()) {
		zend_throw_exception(spl_ce_RuntimeException, "a request is being answered already", 0);
		return false;
	}
	return true;
}

/* In a worker of the tasks' pool every request is a task, whatever the script would answer. */
bool outboard_attend_or_perform(zval *handler, enum outboard_way way)
{
	const char *tasks = getenv("OUTBOARD_TASK_WORKER");
	zval perform;
	bool goes_on;
	if (!tasks || strcmp(tasks, "1") != 0) {
		return outboard_attend(handler, way);
	}
	ZVAL_STRING(&perform, "Outboard\\Engine\\perform");
	goes_on = outboard_attend(&perform, way == OUTBOARD_ONE ? way : OUTBOARD_ALL);
	zval_ptr_dtor(&perform);
	return goes_on;
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
	if (is_resident()) {
		outboard_begin_answering();
		RETURN_BOOL(outboard_attend_or_perform(&info.function_name,
			outboard_concurrency == 1 ? OUTBOARD_ONE : OUTBOARD_ALL));
	}
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_serve, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, handler, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

/* Answers all requests with what the handler returns, until the worker is to leave. */
PHP_FUNCTION(outboard_serve)
{
	zend_fcall_info info;
	zend_fcall_info_cache cache;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_FUNC(info, cache)
	ZEND_PARSE_PARAMETERS_END();
	if (is_resident()) {
		outboard_begin_answering();
		while (outboard_attend_or_perform(&info.function_name, OUTBOARD_SERVED)) {
		}
	}
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_nothing, 0, 0, IS_VOID, 0)
ZEND_END_ARG_INFO()

/* The script goes on below this call once for each request, in a process of its own. */
PHP_FUNCTION(outboard_snapshot)
{
	outboard_event event = {0};
	ZEND_PARSE_PARAMETERS_NONE();
	if (!outboard_events || answering || !outboard_rs_is_forking(outboard_events)) {
		return;
	}
	outboard_begin_answering();
	while (event.kind != OUTBOARD_REQUEST && event.kind != OUTBOARD_STOP) {
		outboard_rs_next(outboard_events, true, true, &event);
	}
	if (event.kind == OUTBOARD_STOP) {
		zend_throw_unwind_exit();
		return;
	}
	outboard_main_visit(&event);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_is_worker, 0, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

PHP_FUNCTION(outboard_is_worker)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_BOOL(outboard_events != NULL);
}

const zend_function_entry outboard_resident_functions[] = {
	ZEND_NS_FENTRY("Outboard", handle_request, ZEND_FN(outboard_handle_request), arginfo_handle, 0)
	ZEND_NS_FENTRY("Outboard", snapshot, ZEND_FN(outboard_snapshot), arginfo_nothing, 0)
	ZEND_NS_FENTRY("Outboard", is_worker, ZEND_FN(outboard_is_worker), arginfo_is_worker, 0)
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

static void add_frankenphp(void)
{
	/* opcache asks every internal function for its module (zend_optimizer.c). */
	EG(current_module) = zend_hash_str_find_ptr(&module_registry, ZEND_STRL("outboard"));
	zend_register_functions(NULL, handle_request_as_frankenphp, NULL, MODULE_PERSISTENT);
	zend_register_functions(NULL, outboard_frankenphp_functions, NULL, MODULE_PERSISTENT);
	EG(current_module) = NULL;
	register_constant("FRANKENPHP_LOG_LEVEL_DEBUG", -4);
	register_constant("FRANKENPHP_LOG_LEVEL_INFO", 0);
	register_constant("FRANKENPHP_LOG_LEVEL_WARN", 4);
	register_constant("FRANKENPHP_LOG_LEVEL_ERROR", 8);
}

/* The part of the API that is written in PHP (php/runtime, embedded by build.rs). */
static void load_runtime(void)
{
	zend_string *source = zend_string_init((const char *) outboard_runtime_php,
		outboard_runtime_php_len, false);
	zend_op_array *code = zend_compile_string(source, "outboard:runtime",
		ZEND_COMPILE_POSITION_AFTER_OPEN_TAG);
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

static void boot(const char *script)
{
	zend_file_handle file;
	zend_stream_init_filename(&file, script);
	file.primary_script = 1;
	load_runtime();
	if (outboard_is_swoole) {
		outboard_swoole_boot();
	}
	if (php_execute_script(&file) && !answering && !EG(exit_status)) {
		run_configured();
	}
	if (outboard_is_swoole) {
		outboard_swoole_end();
	}
	zend_destroy_file_handle(&file);
}

/*
 * Runs the script until it ends. False when it ended without a call for a request, or in a state
 * that cannot be trusted.
 */
bool outboard_resident_run(const char *script, void *events, bool frankenphp, uint32_t concurrency,
	const char *state_report)
{
	volatile bool sound = false;
	outboard_concurrency = concurrency;
	outboard_events = events;
	outboard_frankenphp = frankenphp;
	outboard_doctor_startup(state_report);
	if (frankenphp && !outboard_is_swoole) {
		add_frankenphp();
	}
	if (outboard_is_swoole) {
		outboard_swoole_add_module();
	}
	zend_first_try {
		SG(server_context) = NULL;
		SG(request_info).path_translated = (char *) script;
		SG(request_info).request_uri = (char *) script;
		outboard_time_limit_prepare();
		if (php_request_startup() == SUCCESS) {
			SG(request_info).no_headers = 1;
			/* The boot is a visit, too: it may wait. */
			outboard_visit_startup();
			outboard_coroutine_startup();
			outboard_in_use_startup();
			outboard_persistent_startup();
			outboard_reset_startup();
			boot(script);
			if (outboard_is_child) {
				outboard_child_end();
			}
			if (one_shot) {
				outboard_end_fork();
			} else {
				php_request_shutdown(NULL);
			}
			sound = answering;
		}
	} zend_end_try();
	fflush(stdout);
	return sound;
}
