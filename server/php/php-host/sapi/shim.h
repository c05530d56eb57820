/*
 * What every file of the shim may use: PHP's and Rust's interfaces, what this process is, hooks, checks, and
 * access to functions and classes of the engine.
 */
#ifndef OUTBOARD_SHIM_H
#define OUTBOARD_SHIM_H

#include "check.h"
#include "hooks.h"
#include <time.h>

/* Replaces the handler of a function; returns the original one, or NULL without such a function. */
static inline zif_handler outboard_wrap(const char *name, zif_handler handler)
{
	zend_internal_function *function =
		zend_hash_str_find_ptr(CG(function_table), name, strlen(name));
	zif_handler original = NULL;
	if (function && function->type == ZEND_INTERNAL_FUNCTION) {
		original = function->handler;
		function->handler = handler;
	}
	return original;
}

static inline zend_class_entry *outboard_class(const char *name)
{
	return zend_hash_str_find_ptr(CG(class_table), name, strlen(name));
}

/* Of the clock that waits are measured with. */
static inline int64_t outboard_now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

#endif
