/*
 * Outboard\dispatch() and Outboard\task(), in every mode. A worker script has their PHP part
 * (runtime/tasks.php) from the boot; in classic mode it is loaded for the first task, because few
 * requests have one. primitives.c sends the task.
 */
#include "api/api.h"
#include "runtime.h"

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_dispatch, 0, 1, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, data, IS_MIXED, 0, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, delay, IS_DOUBLE, 0, "0")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, retries, IS_LONG, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_task, 0, 1, IS_MIXED, 0)
	ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, data, IS_MIXED, 0, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, retries, IS_LONG, 1, "null")
ZEND_END_ARG_INFO()

/* Returns a function of the PHP part; NULL, with an exception, if it cannot be loaded. */
static zend_function *find(const char *name, size_t len)
{
	zend_function *function = zend_hash_str_find_ptr(EG(function_table), name, len);
	if (!function) {
		zend_eval_stringl((const char *) outboard_tasks_php, outboard_tasks_php_len, NULL,
			"outboard:tasks");
		function = zend_hash_str_find_ptr(EG(function_table), name, len);
	}
	return EG(exception) ? NULL : function;
}

#define FIND(name) find(ZEND_STRL("outboard\\engine\\" name))

PHP_FUNCTION(outboard_dispatch)
{
	zval arguments[4];
	zend_string *name;
	zval *data = NULL;
	double delay = 0;
	zend_long retries = 0;
	bool has_no_retries = true;
	ZEND_PARSE_PARAMETERS_START(1, 4)
		Z_PARAM_STR(name)
		Z_PARAM_OPTIONAL
		Z_PARAM_ZVAL(data)
		Z_PARAM_DOUBLE(delay)
		Z_PARAM_LONG_OR_NULL(retries, has_no_retries)
	ZEND_PARSE_PARAMETERS_END();
	zend_function *dispatch = FIND("dispatch");
	if (!dispatch) {
		return;
	}
	ZVAL_STR(&arguments[0], name);
	ZVAL_COPY_VALUE(&arguments[1], data ? data : &EG(uninitialized_zval));
	ZVAL_DOUBLE(&arguments[2], delay);
	ZVAL_NULL(&arguments[3]);
	if (!has_no_retries) {
		ZVAL_LONG(&arguments[3], retries);
	}
	zend_call_known_function(dispatch, NULL, NULL, return_value, 4, arguments, NULL);
}

PHP_FUNCTION(outboard_task)
{
	zval arguments[3];
	zend_string *name;
	zval *data = NULL;
	zend_long retries = 0;
	bool has_no_retries = true;
	ZEND_PARSE_PARAMETERS_START(1, 3)
		Z_PARAM_STR(name)
		Z_PARAM_OPTIONAL
		Z_PARAM_ZVAL(data)
		Z_PARAM_LONG_OR_NULL(retries, has_no_retries)
	ZEND_PARSE_PARAMETERS_END();
	zend_function *await_task = FIND("await_task");
	if (!await_task) {
		return;
	}
	ZVAL_STR(&arguments[0], name);
	ZVAL_COPY_VALUE(&arguments[1], data ? data : &EG(uninitialized_zval));
	ZVAL_NULL(&arguments[2]);
	if (!has_no_retries) {
		ZVAL_LONG(&arguments[2], retries);
	}
	zend_call_known_function(await_task, NULL, NULL, return_value, 3, arguments, NULL);
}

const zend_function_entry outboard_task_functions[] = {
	ZEND_NS_FENTRY("Outboard", dispatch, ZEND_FN(outboard_dispatch), arginfo_dispatch, 0)
	ZEND_NS_FENTRY("Outboard", task, ZEND_FN(outboard_task), arginfo_task, 0)
	PHP_FE_END
};
