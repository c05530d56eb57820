/*
 * The functions under FrankenPHP's names, for scripts that were written for it. Called before a worker script boots.
 */
#include "api/api.h"
#include "worker/worker.h"

ZEND_FUNCTION(outboard_handle_request);

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_handle, 0, 1, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, handler, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

static const zend_function_entry handle_request_as_frankenphp[] = {
	ZEND_FENTRY(frankenphp_handle_request, ZEND_FN(outboard_handle_request), arginfo_handle, 0)
	PHP_FE_END
};

static void register_constant(const char *name, zend_long value)
{
	zend_register_long_constant(name, strlen(name), value, CONST_PERSISTENT, 0);
}

/* The memory of requests does not exist yet; without OPcache the engine keeps new strings there. */
void outboard_frankenphp_add(const outboard_start *start)
{
	(void) start;
	if (!outboard_host.has_frankenphp || outboard_host.is_program) {
		return;
	}
	zend_interned_strings_switch_storage(false);
	/* opcache reads the module of every internal function (zend_optimizer.c). */
	EG(current_module) = zend_hash_str_find_ptr(&module_registry, ZEND_STRL("outboard"));
	zend_register_functions(NULL, handle_request_as_frankenphp, NULL, MODULE_PERSISTENT);
	zend_register_functions(NULL, outboard_frankenphp_functions, NULL, MODULE_PERSISTENT);
	EG(current_module) = NULL;
	register_constant("FRANKENPHP_LOG_LEVEL_DEBUG", -4);
	register_constant("FRANKENPHP_LOG_LEVEL_INFO", 0);
	register_constant("FRANKENPHP_LOG_LEVEL_WARN", 4);
	register_constant("FRANKENPHP_LOG_LEVEL_ERROR", 8);
	zend_interned_strings_switch_storage(true);
}
