/*
 * The PHP headers, and everything that differs between PHP versions. No other file uses
 * PHP_VERSION_ID.
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

#ifdef ZEND_FIBER_UCONTEXT
# error "outboard-php needs a PHP that switches fibers in assembler (configured without --disable-fiber-asm)"
#endif

/*
 * Since 8.3 getenv() without arguments reads the environment through its own hook; before, it
 * shares the hook that fills $_SERVER and $_ENV.
 */
#if PHP_VERSION_ID >= 80300
# define OUTBOARD_HAS_LOAD_ENVIRONMENT 1
#endif

/* Whether php-fpm's flush() sends the headers if there is no output yet: since 8.4 (fpm_main.c). */
#define OUTBOARD_FLUSH_SENDS_HEADERS (PHP_VERSION_ID >= 80400)

/*
 * Since 8.3 the engine checks the depth of the C stack, and a coroutine has its own. `here` is an
 * address near the stack's base: less than a page lies above it.
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
 * Later patch releases set a flag when memory runs out, unwind, and refuse calls until it is
 * cleared (ZEND_HAS_OOM in zend_alloc.h).
 */
#ifdef ZEND_HAS_OOM
# define OUTBOARD_HAS_OOM() ZEND_HAS_OOM()
# define OUTBOARD_FORGET_OOM() memset(&EG(delayed_oom), 0, sizeof(EG(delayed_oom)))
#else
# define OUTBOARD_HAS_OOM() false
# define OUTBOARD_FORGET_OOM() ((void) 0)
#endif

/*
 * Whether zend_fiber_init_context succeeded: it returns true in 8.2, and in later versions a
 * zend_result, whose SUCCESS is 0.
 */
#define OUTBOARD_IS_CREATED(result) \
	(__builtin_types_compatible_p(__typeof__(result), bool) ? (result) != 0 : (result) == SUCCESS)

/*
 * A copied notifier of a stream context gets its own reference to the callback: a zval, and since 8.5
 * the call itself, on the heap (user_space_stream_notifier_dtor in streamsfuncs.c).
 */
#if PHP_VERSION_ID >= 80500
# define OUTBOARD_OWN_NOTIFIER(notifier) do { \
		if ((notifier)->ptr) { \
			zend_fcall_info_cache *own = emalloc(sizeof(*own)); \
			zend_fcc_dup(own, (notifier)->ptr); \
			(notifier)->ptr = own; \
		} \
	} while (0)
#else
# define OUTBOARD_OWN_NOTIFIER(notifier) Z_TRY_ADDREF((notifier)->ptr)
#endif

/* How many classes an autoloader is loading; the table is a part of the globals since 8.6. */
#if PHP_VERSION_ID >= 80600
# define OUTBOARD_CLASSES_BEING_LOADED() zend_hash_num_elements(&EG(autoload_current_classnames))
#else
# define OUTBOARD_CLASSES_BEING_LOADED() (EG(in_autoload) ? zend_hash_num_elements(EG(in_autoload)) : 0)
#endif

/* What remembers that a session handler is an object: its class, and since 8.6 only that it is one. */
#if PHP_VERSION_ID >= 80600
typedef bool outboard_session_class;
# define OUTBOARD_SESSION_CLASS(session) ((session)->mod_user_uses_object_methods_as_handlers)
# define OUTBOARD_ADDREF_SESSION_CLASS(class) ((void) (class))
#else
typedef zend_string *outboard_session_class;
# define OUTBOARD_SESSION_CLASS(session) ((session)->mod_user_class_name)
# define OUTBOARD_ADDREF_SESSION_CLASS(class) do { \
		if (class) { \
			zend_string_addref(class); \
		} \
	} while (0)
#endif

/* The setting output_handler, or NULL; a zend_string since 8.6. */
#if PHP_VERSION_ID >= 80600
# define OUTBOARD_OUTPUT_HANDLER() (PG(output_handler) ? ZSTR_VAL(PG(output_handler)) : NULL)
#else
# define OUTBOARD_OUTPUT_HANDLER() PG(output_handler)
#endif

#endif
