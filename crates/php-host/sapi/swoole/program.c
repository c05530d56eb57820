/*
 * The program as a whole: the module that it finds loaded, its boot, and its start() in the zygote,
 * from where workers are forked. Called by resident.c; the PHP part is runtime/swoole/.
 *
 * Invariant: nothing of this exists in a process whose script is no such program.
 */
#include "swoole/coroutines.h"
#include "runtime.h"
#include "ext/standard/basic_functions.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>

/* The version that is reported to programs, whose interfaces are implemented. */
#define SWOOLE_VERSION_TEXT "6.0.0"
#define SWOOLE_VERSION_NUMBER 60000

bool outboard_is_swoole;
bool outboard_swoole_is_worker;
bool outboard_swoole_is_starting;
static int argument_count;
static const char *const *argument_texts;

void outboard_swoole_prepare(int count, const char *const *arguments)
{
	outboard_is_swoole = true;
	argument_count = count;
	argument_texts = arguments;
}

int outboard_swoole_exit_status(void)
{
	return EG(exit_status);
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_any, 0, 0, 0)
	ZEND_ARG_VARIADIC_INFO(0, arguments)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_version, 0, 0, IS_STRING, 0)
ZEND_END_ARG_INFO()

PHP_FUNCTION(swoole_version)
{
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_STRINGL(SWOOLE_VERSION_TEXT, sizeof(SWOOLE_VERSION_TEXT) - 1);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_number, 0, 0, IS_LONG, 0)
ZEND_END_ARG_INFO()

PHP_FUNCTION(swoole_cpu_num)
{
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	ZEND_PARSE_PARAMETERS_NONE();
	RETURN_LONG(processors > 0 ? processors : 1);
}

PHP_FUNCTION(outboard_swoole_arguments)
{
	ZEND_PARSE_PARAMETERS_NONE();
	array_init_size(return_value, (uint32_t) argument_count);
	for (int i = 0; i < argument_count; i++) {
		add_next_index_string(return_value, argument_texts[i]);
	}
}

/*
 * The server is to start. Where the program is only read, this does not return. False: this process forks no workers,
 * such as a child of the program.
 */
PHP_FUNCTION(outboard_swoole_describe)
{
	zend_string *description;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(description)
	ZEND_PARSE_PARAMETERS_END();
	php_output_end_all();
	/* Forks would each print what is left in it. */
	fflush(stdout);
	outboard_swoole_is_starting = outboard_rs_describe(outboard_events, ZSTR_VAL(description), ZSTR_LEN(description));
	RETURN_BOOL(outboard_swoole_is_starting);
}

/* The pipe to `outboard run`; -1 if that has not started this process. */
static int control = -1;

static void on_reload(int signal)
{
	const int error = errno;
	(void) signal;
	if (control >= 0) {
		/* Not write(), which may switch to another coroutine. */
		(void) syscall(SYS_write, control, ZEND_STRL("reload\n"));
	}
	errno = error;
}

static void do_nothing(int signal)
{
	(void) signal;
}

static void handle(int signal, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	sigemptyset(&action.sa_mask);
	sigaction(signal, &action, NULL);
}

/* This process is the program's manager: the signals that reload Swoole's are sent to it as well. */
static void become_manager(void)
{
	const char *path = getenv("OUTBOARD_SWOOLE_CONTROL");
	if (path && control < 0) {
		control = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	}
	handle(SIGUSR1, on_reload);
	handle(SIGUSR2, on_reload);
}

/* SIGUSR2 has its handler already (worker.rs). */
static void become_worker(void)
{
	handle(SIGUSR1, do_nothing);
	if (control >= 0) {
		close(control);
		control = -1;
	}
}

/*
 * True in a worker, which is a fork of this process; false when the program is to end; the id of a child
 * of the program that has exited, after which this is called again.
 */
PHP_FUNCTION(outboard_swoole_fork)
{
	ZEND_PARSE_PARAMETERS_NONE();
	php_output_end_all();
	fflush(stdout);
	become_manager();
	const int32_t forked = outboard_rs_fork_workers(outboard_events);
	if (forked > 0) {
		RETURN_LONG(forked);
	}
	if (forked == 0) {
		RETURN_FALSE;
	}
	become_worker();
	outboard_swoole_is_worker = true;
	outboard_reopen_files();
	outboard_reset_random();
	RETURN_TRUE;
}

/* The end of a process that the program has forked. */
PHP_FUNCTION(outboard_swoole_leave)
{
	zend_long code;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(code)
	ZEND_PARSE_PARAMETERS_END();
	fflush(stdout);
	_exit((int) code);
}

/* Of tools that show processes. */
PHP_FUNCTION(outboard_swoole_set_title)
{
	zend_string *title;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(title)
	ZEND_PARSE_PARAMETERS_END();
	RETURN_BOOL(outboard_rs_set_title(outboard_events, ZSTR_VAL(title), ZSTR_LEN(title)));
}

/* Answers requests, or performs tasks, until the worker is to leave. */
PHP_FUNCTION(outboard_swoole_serve)
{
	zval *handler;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_ZVAL(handler)
	ZEND_PARSE_PARAMETERS_END();
	outboard_begin_handling();
	while (outboard_serve_or_perform(handler, OUTBOARD_SERVE_SWOOLE)) {
	}
}

/* Runs a part of the PHP code that few programs use; false: there is none of that name. */
PHP_FUNCTION(outboard_swoole_load)
{
	zend_string *name;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STR(name)
	ZEND_PARSE_PARAMETERS_END();
	for (size_t i = 0; i < sizeof(outboard_swoole_parts) / sizeof(outboard_swoole_parts[0]); i++) {
		if (zend_string_equals_cstr(name, outboard_swoole_parts[i].name, strlen(outboard_swoole_parts[i].name))) {
			outboard_run_source(outboard_swoole_parts[i].text, outboard_swoole_parts[i].len, "outboard:swoole");
			RETURN_TRUE;
		}
	}
	RETURN_FALSE;
}

#define ENGINE(name) \
	ZEND_NS_FENTRY("Outboard\\Engine\\Swoole", name, ZEND_FN(outboard_swoole_##name), arginfo_any, 0)

static const zend_function_entry functions[] = {
	PHP_FE(swoole_version, arginfo_version)
	PHP_FE(swoole_cpu_num, arginfo_number)
	ENGINE(arguments)
	ENGINE(leave)
	ENGINE(set_title)
	ENGINE(describe)
	ENGINE(fork)
	ENGINE(serve)
	ENGINE(load)
	PHP_FE_END
};

/* Those of the extension that programs read; enable_preemptive_scheduler is the one with an effect. */
PHP_INI_BEGIN()
	PHP_INI_ENTRY("swoole.enable_library", "On", PHP_INI_ALL, NULL)
	PHP_INI_ENTRY("swoole.enable_fiber_mock", "Off", PHP_INI_ALL, NULL)
	PHP_INI_ENTRY(
		"swoole.enable_preemptive_scheduler", "Off", PHP_INI_ALL, outboard_swoole_on_preemptive)
	PHP_INI_ENTRY("swoole.display_errors", "On", PHP_INI_ALL, NULL)
	PHP_INI_ENTRY("swoole.use_shortname", "On", PHP_INI_SYSTEM, NULL)
	PHP_INI_ENTRY("swoole.unixsock_buffer_size", "8388608", PHP_INI_ALL, NULL)
PHP_INI_END()

static PHP_MINIT_FUNCTION(swoole)
{
	REGISTER_INI_ENTRIES();
	zend_register_functions(NULL, outboard_swoole_coroutine_functions, NULL, type);
	zend_register_functions(NULL, outboard_swoole_http_functions, NULL, type);
	zend_register_functions(NULL, outboard_swoole_http_request_functions, NULL, type);
	zend_register_functions(NULL, outboard_swoole_http_response_functions, NULL, type);
	zend_register_functions(NULL, outboard_swoole_server_functions, NULL, type);
	zend_register_functions(NULL, outboard_swoole_socket_functions, NULL, type);
	zend_register_functions(NULL, outboard_swoole_process_functions, NULL, type);
	zend_register_functions(NULL, outboard_swoole_wait_functions, NULL, type);
	zend_register_functions(NULL, outboard_swoole_preemption_functions, NULL, type);
	const zend_ini_entry *short_names =
		zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("swoole.use_shortname"));
	const bool has_short_names = short_names && zend_ini_parse_bool(short_names->value);
	if (has_short_names) {
		zend_register_functions(NULL, outboard_swoole_short_functions, NULL, type);
	}
	REGISTER_BOOL_CONSTANT("SWOOLE_USE_SHORTNAME", has_short_names, CONST_PERSISTENT);
	outboard_swoole_channel_startup(has_short_names);
	outboard_swoole_table_startup();
	outboard_swoole_atomic_startup();
	outboard_swoole_lock_startup();
	REGISTER_STRING_CONSTANT("SWOOLE_VERSION", SWOOLE_VERSION_TEXT, CONST_PERSISTENT);
	REGISTER_LONG_CONSTANT("SWOOLE_VERSION_ID", SWOOLE_VERSION_NUMBER, CONST_PERSISTENT);
	REGISTER_LONG_CONSTANT("SWOOLE_MAJOR_VERSION", 6, CONST_PERSISTENT);
	REGISTER_LONG_CONSTANT("SWOOLE_MINOR_VERSION", 0, CONST_PERSISTENT);
	REGISTER_LONG_CONSTANT("SWOOLE_RELEASE_VERSION", 0, CONST_PERSISTENT);
	REGISTER_STRING_CONSTANT("SWOOLE_EXTRA_VERSION", "", CONST_PERSISTENT);
	return SUCCESS;
}

static zend_module_entry swoole_module = {
	STANDARD_MODULE_HEADER,
	"swoole",
	functions,
	PHP_MINIT(swoole),
	NULL,
	NULL,
	NULL,
	NULL,
	SWOOLE_VERSION_TEXT,
	STANDARD_MODULE_PROPERTIES
};

/* After the engine's start, before the script's boot. */
void outboard_swoole_add_module(void)
{
	if (zend_hash_str_exists(&module_registry, ZEND_STRL("swoole"))) {
		fprintf(stderr, "the extension swoole is loaded: remove it from the ini files, this server "
			"has its classes\n");
		return;
	}
	/* Names that last as long as the process, as during the engine's own start (main.c). */
	zend_interned_strings_switch_storage(false);
	zend_module_entry *module = zend_register_internal_module(&swoole_module);
	if (module && zend_startup_module_ex(module) == SUCCESS) {
		outboard_swoole_coroutine_startup();
	}
	zend_interned_strings_switch_storage(true);
}

/* Before the program's first line. */
void outboard_swoole_boot(void)
{
	outboard_run_source(outboard_swoole_php, outboard_swoole_php_len, "outboard:swoole");
	outboard_run_source(outboard_swoole_global_php, outboard_swoole_global_php_len, "outboard:swoole");
	outboard_swoole_http_startup();
}

/* After its last line: what it has begun goes on to its end, as under the extension. */
void outboard_swoole_end(void)
{
	zval function;
	zval result;
	if (!outboard_events || EG(exception)) {
		return;
	}
	ZVAL_STRING(&function, "Outboard\\Engine\\Swoole\\end");
	if (call_user_function(NULL, NULL, &function, &result, 0, NULL) == SUCCESS) {
		zval_ptr_dtor(&result);
	}
	zval_ptr_dtor(&function);
}
