/*
 * Outboard\snapshot_depends() and Outboard\snapshot_retire(): data that the start of a script has read, and
 * that it has changed. src/callbacks/gateway_calls.rs sends the latter to the gateway.
 */
#include "snapshot/snapshot.h"
#include "ext/spl/spl_exceptions.h"

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_snapshot_depends, 0, 1, IS_VOID, 0)
	ZEND_ARG_VARIADIC_TYPE_INFO(0, keys, IS_STRING, 0)
ZEND_END_ARG_INFO()

static bool check_key(uint32_t position, const zval *key)
{
	if (Z_TYPE_P(key) != IS_STRING) {
		zend_argument_type_error(position, "must be of type string, %s given", zend_zval_type_name(key));
		return false;
	}
	if (Z_STRLEN_P(key) == 0 || Z_STRLEN_P(key) > OUTBOARD_SNAPSHOT_KEY_MAX) {
		zend_argument_value_error(position, "must have 1 to %d bytes", OUTBOARD_SNAPSHOT_KEY_MAX);
		return false;
	}
	return true;
}

/* Without effect unless the script is about to become a snapshot. */
PHP_FUNCTION(outboard_snapshot_depends)
{
	zval *keys;
	uint32_t count;
	ZEND_PARSE_PARAMETERS_START(1, -1)
		Z_PARAM_VARIADIC('+', keys, count)
	ZEND_PARSE_PARAMETERS_END();
	for (uint32_t at = 0; at < count; at++) {
		if (!check_key(at + 1, &keys[at])) {
			return;
		}
		if (!outboard_rs_boot_depends(Z_STRVAL(keys[at]), Z_STRLEN(keys[at]))) {
			zend_throw_exception(spl_ce_RuntimeException, "a snapshot depends on too many keys", 0);
			return;
		}
	}
}

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_snapshot_retire, 0, 0, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, key, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

PHP_FUNCTION(outboard_snapshot_retire)
{
	zval *key = NULL;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_ZVAL_OR_NULL(key)
	ZEND_PARSE_PARAMETERS_END();
	if (key && !check_key(1, key)) {
		return;
	}
	const int64_t retired = outboard_rs_number(SG(server_context), outboard_host.events, OUTBOARD_CALL_RETIRE_SNAPSHOT,
		key ? Z_STRVAL_P(key) : "", key ? Z_STRLEN_P(key) : 0);
	if (retired < 0) {
		zend_throw_exception(spl_ce_RuntimeException, "a snapshot cannot be retired here: there is no gateway", 0);
		return;
	}
	RETVAL_LONG(retired);
}

const zend_function_entry outboard_snapshot_functions[] = {
	ZEND_NS_FENTRY("Outboard", snapshot_depends, ZEND_FN(outboard_snapshot_depends), arginfo_snapshot_depends, 0)
	ZEND_NS_FENTRY("Outboard", snapshot_retire, ZEND_FN(outboard_snapshot_retire), arginfo_snapshot_retire, 0)
	PHP_FE_END
};
