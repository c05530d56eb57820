/*
 * PHP backtraces on demand, in two ways. A worker that computes is asked by a signal and answers
 * at the engine's next interrupt check, where its line numbers are exact. One that waits in a
 * system call is read from outside, by the zygote, so that the call is not disturbed: a signal
 * would end a sleep() early. The zygote can do so because a fork has its globals at the same
 * addresses.
 *
 * Invariants: the signal handler sets two flags and nothing else. Memory is read by
 * process_vm_readv(2) alone, which answers with an error where a load would fault, because from
 * outside it may change while it is read.
 */
#include "shim.h"
#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#define FRAMES_MAX 64
#define TEXT_MAX 256

/* In a worker: which request runs. Read by the zygote. */
static volatile outboard_subject subject;
static volatile sig_atomic_t asked;
static void (*interrupt_next)(zend_execute_data *frame);

/* Whose memory is being read. */
static pid_t reading;

static bool peek(void *to, const volatile void *from, size_t len)
{
	struct iovec local = {to, len};
	struct iovec remote = {(void *) from, len};
	return from && process_vm_readv(reading, &local, 1, &remote, 1, 0) == (ssize_t) len;
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
	if (!string || !peek(&len, &string->len, sizeof(len))) {
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
	char digits[12];
	int len = snprintf(digits, sizeof(digits), "%u", number);
	put(digits, (size_t) len);
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
}

static void on_interrupt(zend_execute_data *frame)
{
	if (asked) {
		asked = 0;
		reading = getpid();
		write_backtrace(frame);
		outboard_rs_backtrace_publish();
	}
	if (interrupt_next) {
		interrupt_next(frame);
	}
}

static void on_signal(int number)
{
	(void) number;
	if (subject.running) {
		asked = 1;
		zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
	}
}

void outboard_backtrace_hook(void)
{
	interrupt_next = zend_interrupt_function;
	zend_interrupt_function = on_interrupt;
}

void outboard_backtrace_install(int signal_number)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	sigemptyset(&action.sa_mask);
	sigaction(signal_number, &action, NULL);
}

void outboard_backtrace_begin(uint32_t slot, uint32_t generation)
{
	asked = 0;
	subject.slot = slot;
	subject.generation = generation;
	subject.running = 1;
}

/* Writes that of a coroutine that waits. */
void outboard_backtrace_at(const void *frame, uint32_t slot, uint32_t generation)
{
	if (frame) {
		reading = getpid();
		outboard_rs_backtrace_about(slot, generation);
		write_backtrace(frame);
		outboard_rs_backtrace_publish();
	}
}

void outboard_backtrace_end(void)
{
	subject.running = 0;
}

/* What the worker is about; false when its memory may not be read (ptrace_scope, seccomp). */
bool outboard_backtrace_subject(int pid, outboard_subject *found)
{
	reading = pid;
	return peek(found, &subject, sizeof(*found));
}

/* Writes the backtrace of another process that was forked from this one. */
void outboard_backtrace_of(int pid)
{
	zend_execute_data *innermost = NULL;
	reading = pid;
	peek(&innermost, &EG(current_execute_data), sizeof(innermost));
	write_backtrace(innermost);
}
