/*
 * PHP backtraces on demand, in two ways. A running worker gets a signal and writes its backtrace at
 * the engine's next interrupt check, where line numbers are exact. The zygote reads a worker that
 * waits in a system call from outside, because a signal would interrupt the call (e.g. end a
 * sleep() early); a fork has its globals at the same addresses. The sampler reads running workers
 * likewise, at an address that it finds itself.
 *
 * Invariants: the signal handler only sets two flags. Memory is read only by system calls,
 * which return an error where a load would fault: another process may change it meanwhile. The zygote has the
 * worker's /proc/PID/mem, since a worker is not dumpable; the sampler has the right of root.
 */
#include "request/request.h"
#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#define FRAMES_MAX 64
#define TEXT_MAX 256
#define COPIES_MAX 4

/* The request that this worker runs, for the zygote. */
static volatile outboard_subject subject;
static volatile sig_atomic_t is_requested;
static void (*interrupt_next)(zend_execute_data *frame);

/* The process whose memory is being read, and its /proc/PID/mem, or -1. In a worker the watcher of stalls reads as well. */
static __thread pid_t reading;
static __thread int reading_memory = -1;

static bool peek(void *to, const volatile void *from, size_t len)
{
	struct iovec local = {to, len};
	struct iovec remote = {(void *) from, len};
	if (!from) {
		return false;
	}
	if (reading_memory != -1) {
		return pread(reading_memory, to, len, (off_t) (uintptr_t) from) == (ssize_t) len;
	}
	return process_vm_readv(reading, &local, 1, &remote, 1, 0) == (ssize_t) len;
}

static void read_self(void)
{
	reading = getpid();
	reading_memory = -1;
}

/*
 * The address of a structure's member in the other process. Its pointers are numbers here, because
 * a pointer to a member would be undefined behaviour for arbitrary values.
 */
#define MEMBER(structure, type, member) \
	((const void *) ((uintptr_t) (structure) + offsetof(type, member)))

static void put(const char *text, size_t len)
{
	outboard_rs_backtrace_write(text, len);
}

#define PUT(text) put(text, sizeof(text) - 1)

static void put_string(const zend_string *string)
{
	char text[TEXT_MAX];
	size_t len;
	if (!string || !peek(&len, MEMBER(string, zend_string, len), sizeof(len))) {
		PUT("?");
		return;
	}
	if (len > sizeof(text)) {
		len = sizeof(text);
	}
	if (peek(text, MEMBER(string, zend_string, val), len)) {
		put(text, len);
	}
}

static void put_number(uint32_t number)
{
	char digits[12];
	int len = snprintf(digits, sizeof(digits), "%u", number);
	put(digits, (size_t) len);
}

/*
 * The line of a frame. The engine keeps the current operation in a register and stores it before a call, so a frame
 * that has called nothing yet has what was in this memory before: then it is the line of its first operation.
 */
static bool find_line(const zend_execute_data *frame, uint32_t *line)
{
	const zend_op *first;
	uint32_t count;
	if (!peek(&first, MEMBER(frame->func, zend_op_array, opcodes), sizeof(first))
		|| !peek(&count, MEMBER(frame->func, zend_op_array, last), sizeof(count))) {
		return false;
	}
	const uintptr_t distance = (uintptr_t) frame->opline - (uintptr_t) first;
	const bool is_own = (uintptr_t) frame->opline >= (uintptr_t) first && distance / sizeof(zend_op) < count;
	return peek(line, MEMBER(is_own ? frame->opline : first, zend_op, lineno), sizeof(*line));
}

/* Writes the place of a frame of PHP code; false for internal functions. */
static bool put_location(const zend_execute_data *frame)
{
	uint8_t type;
	zend_string *file;
	uint32_t line;
	if (!frame->func || !peek(&type, MEMBER(frame->func, zend_function, type), sizeof(type))
		|| !ZEND_USER_CODE(type)
		|| !peek(&file, MEMBER(frame->func, zend_op_array, filename), sizeof(file))) {
		return false;
	}
	PUT(" ");
	put_string(file);
	if (find_line(frame, &line)) {
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
	if (!peek(&name, MEMBER(frame->func, zend_function, common.function_name), sizeof(name))) {
		PUT("?");
	} else if (!name) {
		if (frame->prev_execute_data) {
			PUT("{include}");
		} else {
			PUT("{main}");
		}
	} else {
		if (peek(&scope, MEMBER(frame->func, zend_function, common.scope), sizeof(scope)) && scope
			&& peek(&class_name, MEMBER(scope, zend_class_entry, name), sizeof(class_name))) {
			put_string(class_name);
			PUT("::");
		}
		put_string(name);
		PUT("()");
	}
}

/* Copies frames that have a function, the innermost first; returns how many. */
static uint32_t copy_frames(const zend_execute_data *innermost, zend_execute_data *frames)
{
	const zend_execute_data *at = innermost;
	uint32_t count = 0;
	while (count < FRAMES_MAX && peek(&frames[count], at, sizeof(*frames))) {
		at = frames[count].prev_execute_data;
		count += frames[count].func != NULL;
	}
	return count;
}

/* One line per frame: the function and its current line, for an internal one the caller's line. */
static void write_frames(const zend_execute_data *frames, uint32_t count)
{
	for (uint32_t shown = 0; shown < count; shown++) {
		zend_execute_data caller;
		const zend_execute_data *frame = &frames[shown];
		PUT("#");
		put_number(shown);
		PUT(" ");
		put_function(frame);
		if (!put_location(frame) && peek(&caller, frame->prev_execute_data, sizeof(caller))) {
			put_location(&caller);
		}
		PUT("\n");
	}
	if (count == 0) {
		PUT("(no PHP code is running: the engine starts or ends the request)\n");
	}
}

static void write_backtrace(const zend_execute_data *innermost)
{
	zend_execute_data frames[FRAMES_MAX];
	const uint32_t count = copy_frames(innermost, frames);
	OUTBOARD_ASSERT(count <= FRAMES_MAX);
	write_frames(frames, count);
}

static void on_interrupt(zend_execute_data *frame)
{
	if (is_requested) {
		is_requested = 0;
		read_self();
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
		is_requested = 1;
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
	is_requested = 0;
	subject.slot = slot;
	subject.generation = generation;
	subject.running = 1;
}

/* Writes the backtrace of a waiting coroutine. */
void outboard_backtrace_at(const void *frame, uint32_t slot, uint32_t generation)
{
	if (frame) {
		read_self();
		outboard_rs_backtrace_about(slot, generation);
		write_backtrace(frame);
		outboard_rs_backtrace_publish();
	}
}

void outboard_backtrace_end(void)
{
	subject.running = 0;
}

/* The request of the worker with this memory; false if it cannot be read. */
bool outboard_backtrace_subject(int memory, outboard_subject *found)
{
	reading_memory = memory;
	return peek(found, &subject, sizeof(*found));
}

/* The address of this program's pointer to the innermost frame. */
const void *outboard_backtrace_root(void)
{
	return &EG(current_execute_data);
}

/* Writes the backtrace of another process of this program, which has that pointer at `root`; `memory` is -1, or
 * its /proc/PID/mem. If the innermost frame changes meanwhile, it is copied again, a few times. */
void outboard_backtrace_from(int pid, int memory, const void *root)
{
	zend_execute_data frames[FRAMES_MAX];
	zend_execute_data *innermost = NULL, *after = NULL;
	uint32_t count = 0;
	reading = pid;
	reading_memory = memory;
	for (int tries = 0; tries < COPIES_MAX; tries++) {
		peek(&innermost, root, sizeof(innermost));
		count = copy_frames(innermost, frames);
		if (peek(&after, root, sizeof(after)) && after == innermost) {
			break;
		}
	}
	write_frames(frames, count);
}
