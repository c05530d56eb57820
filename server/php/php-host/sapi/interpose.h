/*
 * For replacements of functions of the C library: the original function. PHP and its libraries find
 * the replacements because this program exports their names (build.rs).
 */
#ifndef OUTBOARD_INTERPOSE_H
#define OUTBOARD_INTERPOSE_H

#include <dlfcn.h>

/* Defines `real`, the C library's own function. */
#define REAL(name) \
	static __typeof__(&name) real; \
	if (!real) { \
		real = (__typeof__(&name)) dlsym(RTLD_NEXT, #name); \
	}

#endif
