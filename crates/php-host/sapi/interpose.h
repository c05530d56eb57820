/*
 * What a stand-in for a function of the C library needs: the function itself. PHP and its libraries
 * find the stand-ins, because this program exports their names (build.rs).
 */
#ifndef OUTBOARD_INTERPOSE_H
#define OUTBOARD_INTERPOSE_H

#include <dlfcn.h>

/* The C library's own function, as `real`. */
#define REAL(name) \
	static __typeof__(&name) real; \
	if (!real) { \
		real = (__typeof__(&name)) dlsym(RTLD_NEXT, #name); \
	}

#endif
