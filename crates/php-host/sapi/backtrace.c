/*
 * PHP backtraces on demand: at the engine's next interrupt check, or, when a second signal finds
 * the first unanswered, from inside of the signal handler.
 *
 * Invariant: everything below is async-signal-safe. No allocation, no locks; memory of the engine
 * is read through process_vm_readv(2), which answers with an error where a load would fault.
 */
#include "shim.h"
#include <errno.h>
#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#define FRAMES_MAX 64
#define TEXT_MAX 256

static volatile sig_atomic_t running;
static volatile sig_atomic_t asked;
static void (*interrupt_next)(zend_execute_data *frame);

static bool peek(void *to, const void *from, size_t len)
{
	struct iovec local = {to, len};
	struct iovec remote = {(void *) from, len};
	return from && process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t) len;
}

static void put(const char *text, size_t len)
{
	outboard_rs_backtrace_write(text, len);
}

#define PUT(text) put(text, sizeof(text) - 1)

static void put_string(const zend_string *string)
{
	char text[TEXT_MAX];
	size_t len;
	if (!peek(&len, &string->len, sizeof(len))) {
		PUT("?");
		return;
	}
	if (len > sizeof(text)) {
		len = sizeof(text);
	}
	if (peek(text, string->val, len)) {
		put(text, len);
	}
}

static void put_number(uint32_t number)
{
	char digits[10];
	size_t at = sizeof(digits);
	do {
		digits[--at] = (char) ('0' + number % 10);
		number /= 10;
	} while (number);
	put(digits + at, sizeof(digits) - at);
}

/* Where a frame of PHP code stands; false for frames of internal functions. */
static bool put_place(const zend_execute_data *frame)
{
	uint8_t type;
	zend_string *file;
	uint32_t line;
	if (!frame->func || !peek(&type, &frame->func->type, sizeof(type))
		|| !ZEND_USER_CODE(type)
		|| !peek(&file, &frame->func->op_array.filename, sizeof(file))) {
		return false;
	}
	PUT(" ");
	put_string(file);
	if (frame->opline && peek(&line, &frame->opline->lineno, sizeof(line))) {
		PUT(":");
		put_number(line);
	}
	return true;
}

static void put_function(const zend_execute_data *frame)
{
	zend_string *name;
	zend_class_entry *scope;
	zend_string *class_name;
	if (!peek(&name, &frame->func->common.function_name, sizeof(name))) {
		PUT("?");
	} else if (!name) {
		if (frame->prev_execute_data) {
			PUT("{include}");
		} else {
			PUT("{main}");
		}
	} else {
		if (peek(&scope, &frame->func->common.scope, sizeof(scope)) && scope
			&& peek(&class_name, &scope->name, sizeof(class_name))) {
			put_string(class_name);
			PUT("::");
		}
		put_string(name);
		PUT("()");
	}
}

/* One line a frame: function, then the line that it is at; an internal one is at its caller's. */
static void write_backtrace(const zend_execute_data *innermost)
{
	const zend_execute_data *at = innermost;
	zend_execute_data frame;
	uint32_t shown = 0;
	while (shown < FRAMES_MAX && peek(&frame, at, sizeof(frame))) {
		if (frame.func) {
			zend_execute_data caller;
			PUT("#");
			put_number(shown++);
			PUT(" ");
			put_function(&frame);
			if (!put_place(&frame) && peek(&caller, frame.prev_execute_data, sizeof(caller))) {
				put_place(&caller);
			}
			PUT("\n");
		}
		at = frame.prev_execute_data;
	}
	if (shown == 0) {
		PUT("(no PHP code is running: the engine starts or ends the request)\n");
	}
	outboard_rs_backtrace_publish();
}

static void on_interrupt(zend_execute_data *frame)
{
	if (asked) {
		asked = 0;
		write_backtrace(EG(current_execute_data));
	}
	if (interrupt_next) {
		interrupt_next(frame);
	}
}

static void on_signal(int number)
{
	int saved = errno;
	(void) number;
	if (running && !asked) {
		asked = 1;
		zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
	} else if (running) {
		asked = 0;
		write_backtrace(EG(current_execute_data));
	}
	errno = saved;
}

void outboard_backtrace_hook(void)
{
	interrupt_next = zend_interrupt_function;
	zend_interrupt_function = on_interrupt;
}

/* SA_RESTART: a system call that is waited in goes on waiting. */
void outboard_backtrace_install(int signal_number)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	sigemptyset(&action.sa_mask);
	sigaction(signal_number, &action, NULL);
}

void outboard_backtrace_begin(void)
{
	asked = 0;
	running = 1;
}

void outboard_backtrace_end(void)
{
	running = 0;
}
