/*
 * The life cycle of a worker script: boots it, handles requests when it calls for them, ends it.
 * Called by the worker (src/worker_script.rs); calls loop.c.
 */
#include "worker/worker.h"
#include "runtime.h"
#include "ext/spl/spl_exceptions.h"
#include "ext/standard/basic_functions.h"

static bool is_handling;
/* Of a program, as on its command line. */
static int argument_count;
static const char *const *argument_texts;

/* From here on the worker handles requests. In a zygote this returns only in the forks. */
void outboard_begin_handling(void)
{
	if (is_handling) {
		return;
	}
	OUTBOARD_ASSERT(outboard_host.events && !outboard_host.is_fork);
	is_handling = true;
	OUTBOARD_RUN_HOOKS(boot_ended);
	if (outboard_rs_snapshot(outboard_host.events)) {
		outboard_host.is_fork = true;
		OUTBOARD_RUN_HOOKS(forked);
	}
	outboard_rs_ready(outboard_host.events);
}

static bool can_handle_requests(void)
{
	if (!outboard_host.events || outboard_host.boots_classic) {
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
			outboard_host.concurrency == 1 ? OUTBOARD_SERVE_ONE : OUTBOARD_SERVE_ALL));
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
bool outboard_is_booting(void)
{
	return outboard_host.events && !is_handling && outboard_rs_is_forking(outboard_host.events);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_is_worker, 0, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

PHP_FUNCTION(outboard_is_worker)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_BOOL(outboard_host.events && !outboard_host.boots_classic);
}

PHP_FUNCTION(outboard_is_booting)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_BOOL(outboard_is_booting());
}

const zend_function_entry outboard_worker_functions[] = {
	ZEND_NS_FENTRY("Outboard", handle_request, ZEND_FN(outboard_handle_request), arginfo_handle, 0)
	ZEND_NS_FENTRY("Outboard", is_worker, ZEND_FN(outboard_is_worker), arginfo_is_worker, 0)
	ZEND_NS_FENTRY("Outboard", is_booting, ZEND_FN(outboard_is_booting), arginfo_is_worker, 0)
	ZEND_NS_FENTRY("Outboard", serve, ZEND_FN(outboard_serve), arginfo_serve, 0)
	PHP_FE_END
};

/* Compiles and runs PHP code of the host (runtime/, embedded by build.rs). A debugger stops nowhere in it, and takes the
 * application's script for the first one (Xdebug's statement handler and execute_ex). */
void outboard_run_source(const unsigned char *text, size_t len, const char *name)
{
	OUTBOARD_ASSERT(text[len] == 0); /* the scanner looks one byte ahead */
	zend_string *source = zend_string_init((const char *) text, len, false);
	const uint32_t options = CG(compiler_options);
	void (*const execute)(zend_execute_data *) = zend_execute_ex;
	CG(compiler_options) &= ~ZEND_COMPILE_EXTENDED_STMT;
	zend_execute_ex = execute_ex;
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
	zend_execute_ex = execute;
	CG(compiler_options) = options;
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
	outboard_host.script = &file;
	outboard_run_source(outboard_runtime_php, outboard_runtime_php_len, "outboard:runtime");
	OUTBOARD_RUN_HOOKS(runtime_loaded);
	/* As for the command line's script (do_cli in php_cli.c): its first line may name PHP. */
	CG(skip_shebang) |= outboard_host.is_program;
	if (php_execute_script(&file) && !is_handling && !EG(exit_status)) {
		run_configured();
	}
	OUTBOARD_RUN_HOOKS(script_ended);
	zend_destroy_file_handle(&file);
	outboard_host.script = NULL;
}

/*
 * Runs the script until it ends. Returns false if it ended without a call for a request, or if the
 * engine has failed. `boot_request` is what a script of classic mode sees while it boots, else NULL.
 */
bool outboard_worker_script_run(const char *script, void *events, bool frankenphp, uint32_t concurrency,
	bool exit_ends_script, const char *state_report, const outboard_request *boot_request)
{
	const outboard_start start = {.path = script, .state_report = state_report, .boot_request = boot_request};
	volatile bool sound = false;
	OUTBOARD_ASSERT(outboard_stations && events && concurrency > 0);
	outboard_host.concurrency = concurrency;
	outboard_host.events = events;
	outboard_host.has_frankenphp = frankenphp;
	/* Other requests of the worker would lose their objects. */
	outboard_host.exit_ends_script = exit_ends_script && concurrency == 1;
	OUTBOARD_RUN_HOOKS(script_prepare, &start);
	zend_first_try {
		SG(server_context) = NULL;
		SG(request_info).path_translated = (char *) script;
		SG(request_info).request_uri = (char *) script;
		outboard_time_limit_prepare();
		outboard_request_state_prepare_boot(boot_request != NULL);
		if (php_request_startup() == SUCCESS) {
			SG(request_info).no_headers = 1;
			/* The boot has a request state, too: it may wait. */
			outboard_request_state_startup();
			outboard_loop_startup();
			OUTBOARD_RUN_HOOKS(script_start, &start);
			boot(script);
			if (!is_handling) {
				OUTBOARD_RUN_HOOKS(boot_failed);
			}
			OUTBOARD_RUN_HOOKS(script_over);
			if (outboard_host.is_fork) {
				outboard_end_fork();
				OUTBOARD_RUN_HOOKS(fork_done);
			} else {
				php_request_shutdown(NULL);
			}
			sound = is_handling;
		}
	} zend_end_try();
	fflush(stdout);
	return sound;
}

void outboard_program_prepare(int count, const char *const *arguments)
{
	OUTBOARD_ASSERT(!outboard_host.is_program && count >= 0);
	outboard_host.is_program = true;
	argument_count = count;
	argument_texts = arguments;
}

const char *const *outboard_program_arguments(int *count)
{
	*count = argument_count;
	return argument_texts;
}

/* Of the script: the number of exit(), or 255 after a fatal error. */
int outboard_exit_status(void)
{
	return EG(exit_status);
}
