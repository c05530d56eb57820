/*
 * The program as a whole: its boot, its end, and its start() in the zygote, from where workers are forked. Called by the
 * hooks of engine/subjects.c; the PHP part is swoole/runtime/, and the module that a program finds is module.c.
 *
 * Invariant: nothing of this runs in a process whose script is no such program.
 */
#include "swoole/sapi/coroutines.h"
#include "fork/fork.h"
#include "reset/reset.h"
#include "runtime.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>

outboard_swoole_program outboard_program;

ZEND_BEGIN_ARG_INFO_EX(arginfo_any, 0, 0, 0)
	ZEND_ARG_VARIADIC_INFO(0, arguments)
ZEND_END_ARG_INFO()

PHP_FUNCTION(outboard_swoole_arguments)
{
	int count;
	const char *const *texts = outboard_program_arguments(&count);
	ZEND_PARSE_PARAMETERS_NONE();
	array_init_size(return_value, (uint32_t) count);
	for (int i = 0; i < count; i++) {
		add_next_index_string(return_value, texts[i]);
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
	OUTBOARD_ASSERT(outboard_host.is_program);
	php_output_end_all();
	/* Forks would each print what is left in it. */
	fflush(stdout);
	outboard_program.is_starting = outboard_rs_describe(outboard_host.events, ZSTR_VAL(description), ZSTR_LEN(description));
	RETURN_BOOL(outboard_program.is_starting);
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
	const int32_t forked = outboard_rs_fork_workers(outboard_host.events);
	if (forked > 0) {
		RETURN_LONG(forked);
	}
	if (forked == 0) {
		RETURN_FALSE;
	}
	become_worker();
	outboard_program.is_worker = true;
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
	RETURN_BOOL(outboard_rs_set_title(outboard_host.events, ZSTR_VAL(title), ZSTR_LEN(title)));
}

/* Answers requests, or performs tasks, until the worker is to leave. */
PHP_FUNCTION(outboard_swoole_serve)
{
	zval *handler;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_ZVAL(handler)
	ZEND_PARSE_PARAMETERS_END();
	outboard_begin_handling();
	while (outboard_serve_or_perform(handler, OUTBOARD_SERVE_RAW)) {
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

const zend_function_entry outboard_swoole_program_functions[] = {
	ENGINE(arguments)
	ENGINE(leave)
	ENGINE(set_title)
	ENGINE(describe)
	ENGINE(fork)
	ENGINE(serve)
	ENGINE(load)
	PHP_FE_END
};

/* Before the program's first line. */
void outboard_program_boot(void)
{
	if (!outboard_host.is_program) {
		return;
	}
	outboard_run_source(outboard_swoole_php, outboard_swoole_php_len, "outboard:swoole");
	outboard_run_source(outboard_swoole_global_php, outboard_swoole_global_php_len, "outboard:swoole");
}

/* After its last line: what it has begun goes on to its end, as under the extension. */
void outboard_program_end(void)
{
	zval function;
	zval result;
	if (!outboard_host.is_program || !outboard_host.events || EG(exception)) {
		return;
	}
	ZVAL_STRING(&function, "Outboard\\Engine\\Swoole\\end");
	if (call_user_function(NULL, NULL, &function, &result, 0, NULL) == SUCCESS) {
		zval_ptr_dtor(&result);
	}
	zval_ptr_dtor(&function);
}
