/*
 * How many rows a query of mysqli or pgsql has returned or changed, from what these extensions show to scripts: their
 * structures differ between versions, and need not be installed where this is built.
 *
 * Called by database_span.c after a call that did not throw. Invariants: -1 stands for unknown; nothing is
 * fetched, and no exception remains.
 */
#include "tracing/tracing.h"

/* A property that is a number, which may be larger than an integer of PHP. */
static zend_long property(zval *object, const char *name)
{
	zval held;
	ZVAL_UNDEF(&held);
	const zval *value = zend_read_property(Z_OBJCE_P(object), Z_OBJ_P(object), name, strlen(name), true, &held);
	const zend_long number = value && Z_TYPE_P(value) == IS_LONG ? Z_LVAL_P(value) : -1;
	zval_ptr_dtor(&held);
	if (EG(exception)) {
		zend_clear_exception();
		return -1;
	}
	return number;
}

/* `subject` is the connection or the statement. */
zend_long outboard_rows_of_mysqli(zval *subject, zval *result)
{
	if (Z_TYPE_P(result) == IS_OBJECT) {
		/* With MYSQLI_USE_RESULT the rows have not come yet. */
		return property(result, "type") == 0 ? property(result, "num_rows") : -1;
	}
	if (Z_TYPE_P(result) != IS_TRUE || !subject || Z_TYPE_P(subject) != IS_OBJECT) {
		return -1;
	}
	/* A statement that returns rows, which were not stored. */
	return property(subject, "field_count") == 0 ? property(subject, "affected_rows") : -1;
}

zend_long outboard_rows_of_pgsql(zval *result)
{
	zend_function *counts = zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("pg_affected_rows"));
	if (!counts || Z_TYPE_P(result) != IS_OBJECT) {
		return -1;
	}
	zval rows;
	ZVAL_UNDEF(&rows);
	/* Of a SELECT, these are the rows that it has returned (PQcmdTuples). */
	zend_call_known_function(counts, NULL, NULL, &rows, 1, result, NULL);
	const zend_long number = Z_TYPE(rows) == IS_LONG ? Z_LVAL(rows) : -1;
	zval_ptr_dtor(&rows);
	if (EG(exception)) {
		zend_clear_exception();
	}
	OUTBOARD_ASSERT(!EG(exception) && number >= -1);
	return number;
}
