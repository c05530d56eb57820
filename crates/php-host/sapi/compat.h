/*
 * Everything that differs between PHP versions, and the PHP headers themselves. No other file
 * asks for PHP_VERSION_ID.
 */
#ifndef OUTBOARD_COMPAT_H
#define OUTBOARD_COMPAT_H

#include "php.h"
#include "SAPI.h"
#include "php_ini.h"
#include "php_main.h"
#include "php_output.h"
#include "php_variables.h"
#include "zend_exceptions.h"
#include "zend_extensions.h"
#include "zend_signal.h"
#include "zend_stream.h"
#include "ext/standard/head.h"
#include "ext/standard/info.h"

/* In no header of PHP; main/php_ini.c. */
extern PHPAPI char *php_ini_opened_path;

#if PHP_VERSION_ID < 80200
# error "outboard-php needs PHP 8.2 or later"
#endif
#ifdef ZTS
# error "outboard-php needs a non-thread-safe (NTS) PHP; each worker is a process of its own"
#endif

/*
 * Since 8.3 getenv() without arguments asks for the environment through a hook of its own;
 * before, it shares the one that fills $_SERVER and $_ENV.
 */
#if PHP_VERSION_ID >= 80300
# define OUTBOARD_HAS_LOAD_ENVIRONMENT 1
#endif

/*
 * Since 8.3 the engine checks how far the C stack has grown; a coroutine has another one. `here` is
 * an address at its beginning, above which there is less than a page.
 */
#ifdef ZEND_CHECK_STACK_LIMIT
# define OUTBOARD_LIMIT_STACK(here, size) do { \
		bool is_checked = EG(max_allowed_stack_size) != ZEND_MAX_ALLOWED_STACK_SIZE_UNCHECKED; \
		EG(stack_base) = is_checked ? (here) : NULL; \
		EG(stack_limit) = is_checked \
			? (here) - (size) + 2 * 4096 + EG(reserved_stack_size) : NULL; \
	} while (0)
#else
# define OUTBOARD_LIMIT_STACK(here, size) ((void) (here), (void) (size))
#endif

/*
 * Later patch releases note that memory ran out, unwind, and let nothing be called any more (the
 * state is that of the request; ZEND_HAS_OOM in zend_alloc.h).
 */
#ifdef ZEND_HAS_OOM
# define OUTBOARD_HAS_OOM() ZEND_HAS_OOM()
# define OUTBOARD_FORGET_OOM() memset(&EG(delayed_oom), 0, sizeof(EG(delayed_oom)))
#else
# define OUTBOARD_HAS_OOM() false
# define OUTBOARD_FORGET_OOM() ((void) 0)
#endif

/*
 * Whether zend_fiber_init_context made one: it returns true in 8.2, and in later versions a
 * zend_result, whose SUCCESS is 0.
 */
#define OUTBOARD_IS_CREATED(made) \
	(__builtin_types_compatible_p(__typeof__(made), bool) ? (made) != 0 : (made) == SUCCESS)

#endif
