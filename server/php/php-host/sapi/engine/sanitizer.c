/*
 * Support for AddressSanitizer, and deliberate faults that show whether it reports them. Called by
 * hooks; empty except in the build of ci/test-asan.
 *
 * The sanitizer unpoisons the stack that longjmp unwinds, as every bailout of PHP does, so it has
 * to know the current stack. PHP's own code, which switches to coroutines and Fibers, is not
 * instrumented; an observer of the engine reports each switch instead.
 */
#include "engine/engine.h"
#include "zend_fibers.h"
#include "zend_observer.h"

#ifdef __SANITIZE_ADDRESS__

#include <dlfcn.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

/* The beginning of zend_fibers.c's private structure. */
struct _zend_fiber_stack {
	void *pointer;
	size_t size;
};

/* The process's own stack. */
static const void *main_stack;
static size_t main_stack_bytes;

static void finish_switch(void)
{
	static bool is_main_known;
	const void *stack;
	size_t bytes;
	__sanitizer_finish_switch_fiber(NULL, &stack, &bytes);
	if (!is_main_known) {
		main_stack = stack;
		main_stack_bytes = bytes;
		is_main_known = true;
	}
}

/*
 * Runs on the stack of `from`. It completes the switch before this one: once a switch has started,
 * the sanitizer accepts the stack pointer in either stack.
 */
static void on_switch(zend_fiber_context *from, zend_fiber_context *to)
{
	static bool is_switching;
	(void) from;
	if (is_switching) {
		finish_switch();
	}
	is_switching = true;
	if (to->stack) {
		__sanitizer_start_switch_fiber(NULL, to->stack->pointer, to->stack->size);
	} else {
		__sanitizer_start_switch_fiber(NULL, main_stack, main_stack_bytes);
	}
}

/* The memory of the stack is reused. */
static void on_destroy(zend_fiber_context *ending)
{
	if (ending->stack) {
		__asan_unpoison_memory_region(ending->stack->pointer, ending->stack->size);
	}
}

static char *allocator;

/*
 * Together with AddressSanitizer, gcc's run-time for undefined behaviour ignores its options and
 * would write to a worker's standard error.
 */
static void report_to(const char *path)
{
	void *library = dlopen("libubsan.so.1", RTLD_NOLOAD | RTLD_LAZY);
	void *found = library ? dlsym(library, "__sanitizer_set_report_path") : NULL;
	void (*set_path)(const char *);
	memcpy(&set_path, &found, sizeof(set_path));
	if (set_path) {
		set_path(path);
	}
}

/* Before the host replaces the environment by the app's. */
__attribute__((constructor)) static void note_environment(void)
{
	const char *value = getenv("USE_ZEND_ALLOC");
	const char *path = getenv("OUTBOARD_UBSAN_REPORT");
	allocator = value ? strdup(value) : NULL;
	if (path) {
		report_to(path);
	}
}

/* Before PHP's memory manager starts (start_memory_manager in zend_alloc.c). */
void outboard_sanitizer_prepare(void)
{
	if (allocator) {
		setenv("USE_ZEND_ALLOC", allocator, 1);
	}
}

/* Once the engine has started. */
void outboard_sanitizer_startup(void)
{
	unsetenv("USE_ZEND_ALLOC");
	zend_observer_fiber_switch_register(on_switch);
	zend_observer_fiber_destroy_register(on_destroy);
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_fault, 0, 1, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO(0, kind, IS_STRING, 0)
ZEND_END_ARG_INFO()

static zend_long fault_of_heap(volatile size_t beyond)
{
	char *bytes = calloc(1, beyond);
	zend_long read = ((volatile char *) bytes)[beyond];
	free(bytes);
	return read;
}

static zend_long fault_of_stack(volatile size_t beyond)
{
	volatile char bytes[16] = {0};
	volatile char *volatile first = bytes;
	return first[beyond];
}

/* malloc(3) checks PHP's memory only with USE_ZEND_ALLOC=0. */
static zend_long fault_of_php_memory(volatile size_t size)
{
	volatile char *bytes = emalloc(size);
	efree((void *) bytes);
	return bytes[0];
}

static zend_long fault_of_arithmetic(volatile int by)
{
	volatile int most = INT_MAX;
	return most + by;
}

/* Commits a fault that the sanitizers have to report. */
PHP_FUNCTION(outboard_commit_fault)
{
	char *kind;
	size_t kind_len;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_STRING(kind, kind_len)
	ZEND_PARSE_PARAMETERS_END();
	(void) kind_len;
	if (strcmp(kind, "heap") == 0) {
		RETURN_LONG(fault_of_heap(16));
	}
	if (strcmp(kind, "stack") == 0) {
		RETURN_LONG(fault_of_stack(16));
	}
	if (strcmp(kind, "php-memory") == 0) {
		RETURN_LONG(fault_of_php_memory(16));
	}
	RETURN_LONG(fault_of_arithmetic(1));
}

const zend_function_entry outboard_sanitizer_functions[] = {
	PHP_FE(outboard_commit_fault, arginfo_fault)
	PHP_FE_END
};

#else

void outboard_sanitizer_prepare(void)
{
}

void outboard_sanitizer_startup(void)
{
}

const zend_function_entry outboard_sanitizer_functions[] = {
	PHP_FE_END
};

#endif
