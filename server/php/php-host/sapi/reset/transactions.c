/*
 * Open transactions: which calls begin one, and how a connection rolls it back. Called by reset.c
 * when a tracked function is called, and by reset/held_resources.c at a request's end.
 */
#include "reset/reset.h"
#include <syslog.h>

static zend_class_entry *mysqli_class;
static zend_class_entry *pgsql_class;
static zend_class_entry *pdo_class;
static zend_class_entry *sqlite_class;

static bool has_method(const zend_object *object, const char *name)
{
	return zend_hash_str_exists(&object->ce->function_table, name, strlen(name));
}

/* `result` is undefined if the method has thrown. */
static void call_for(zend_object *of, const char *method, zval *argument, zval *result)
{
	zval object;
	zval name;
	ZVAL_OBJ(&object, of);
	ZVAL_UNDEF(result);
	ZVAL_STRING(&name, method);
	call_user_function(NULL, &object, &name, result, argument ? 1 : 0, argument);
	zval_ptr_dtor(&name);
}

static bool call_method(zend_object *of, const char *method, zval *argument)
{
	zval result;
	call_for(of, method, argument, &result);
	bool is_true = Z_TYPE(result) == IS_TRUE;
	zval_ptr_dtor(&result);
	return is_true;
}

/* PDO::ATTR_PERSISTENT, PDO::ATTR_DRIVER_NAME */
enum { PERSISTENT = 12, DRIVER_NAME = 16 };

static void attribute_of(zend_object *connection, zend_long which, zval *value)
{
	zval argument;
	ZVAL_LONG(&argument, which);
	call_for(connection, "getAttribute", &argument, value);
}

static bool is_pdo_sqlite(zend_object *connection)
{
	zval driver;
	if (!pdo_class || !instanceof_function(connection->ce, pdo_class)) {
		return false;
	}
	attribute_of(connection, DRIVER_NAME, &driver);
	bool is = Z_TYPE(driver) == IS_STRING && zend_string_equals_literal(Z_STR(driver), "sqlite");
	zval_ptr_dtor(&driver);
	return is;
}

static bool is_persistent_pdo(zend_object *connection)
{
	zval persistent;
	attribute_of(connection, PERSISTENT, &persistent);
	bool is = zend_is_true(&persistent);
	zval_ptr_dtor(&persistent);
	return is;
}

/* Runs a statement in SQLite without warnings; returns whether it succeeded. */
static bool run_quietly(zend_object *connection, const char *statement)
{
	const int reporting = EG(error_reporting);
	const int handled = EG(user_error_handler_error_reporting);
	zval argument;
	zval result;
	EG(error_reporting) = 0;
	EG(user_error_handler_error_reporting) = 0;
	ZVAL_STRING(&argument, statement);
	call_for(connection, "exec", &argument, &result);
	zval_ptr_dtor(&argument);
	const bool done = !EG(exception) && Z_TYPE(result) != IS_FALSE && Z_TYPE(result) != IS_UNDEF;
	zval_ptr_dtor(&result);
	if (EG(exception)) {
		zend_clear_exception();
	}
	EG(error_reporting) = reporting;
	EG(user_error_handler_error_reporting) = handled;
	return done;
}

static void log_rolled_back(void)
{
	php_log_err_with_severity(
		"a request left a transaction open: it was rolled back", LOG_WARNING);
}

/*
 * SQLite's classes do not report a transaction that a statement has begun, so a ROLLBACK is tried.
 * If a statement has ended a transaction, PDO's flag is cleared by rolling back a new one.
 */
static void roll_back_sqlite(zend_object *connection)
{
	if (run_quietly(connection, "ROLLBACK")) {
		log_rolled_back();
	}
	if (has_method(connection, "intransaction") && call_method(connection, "inTransaction", NULL)
		&& run_quietly(connection, "BEGIN")) {
		call_method(connection, "rollBack", NULL);
	}
}

static void roll_back_pgsql(zend_object *connection)
{
	zval arguments[2];
	zval result;
	zval name;
	ZVAL_OBJ(&arguments[0], connection);
	outboard_call_if_exists("pg_transaction_status", &arguments[0], &result);
	if (Z_TYPE(result) == IS_LONG && Z_LVAL(result) != 0) {
		ZVAL_STRING(&arguments[1], "ROLLBACK");
		ZVAL_STRING(&name, "pg_query");
		call_user_function(NULL, NULL, &name, &result, 2, arguments);
		zval_ptr_dtor(&name);
		zval_ptr_dtor(&arguments[1]);
	}
	zval_ptr_dtor(&result);
}

/*
 * Rolls back with the connection's own methods. mysqli does not report whether a transaction is
 * open, so it always rolls back; only PDO's is logged.
 */
void outboard_roll_back(zend_object *connection, bool autocommit)
{
	if (is_pdo_sqlite(connection) || (sqlite_class && instanceof_function(connection->ce, sqlite_class))) {
		roll_back_sqlite(connection);
	} else if (has_method(connection, "intransaction")) {
		if (call_method(connection, "inTransaction", NULL) && !EG(exception)) {
			call_method(connection, "rollBack", NULL);
			log_rolled_back();
		}
	} else if (has_method(connection, "rollback")) {
		zval on;
		ZVAL_TRUE(&on);
		call_method(connection, "rollback", NULL);
		if (autocommit && !EG(exception)) {
			call_method(connection, "autocommit", &on);
		}
	} else {
		roll_back_pgsql(connection);
	}
	if (EG(exception)) {
		zend_clear_exception();
	}
}

/* Skips spaces, comments and the end of the statement before. */
static const char *next_statement(const char *text)
{
	for (;;) {
		text += strspn(text, " \t\r\n\f\v(;");
		const char *end = NULL;
		if (text[0] == '-' && text[1] == '-') {
			end = strchr(text, '\n');
		} else if (text[0] == '/' && text[1] == '*') {
			end = strstr(text, "*/");
			end = end ? end + 2 : NULL;
		} else {
			return text;
		}
		if (!end) {
			return text + strlen(text);
		}
		text = end;
	}
}

static bool has_word(const char *text, const char *word)
{
	return strncasecmp(text, word, strlen(word)) == 0;
}

/* How much of the argument of exec() is scanned: it may be a dump. */
#define SCANNED_BYTES (64 * 1024)

/*
 * Whether one of these statements opens a transaction, judged by its first word. A semicolon in a
 * string may look like another statement; then there is nothing to roll back.
 */
static bool opens_transaction(const zval *statements)
{
	if (Z_TYPE_P(statements) != IS_STRING) {
		return false;
	}
	const char *first = Z_STRVAL_P(statements);
	for (const char *text = first; text && text - first < SCANNED_BYTES; text = strchr(text, ';')) {
		text = next_statement(text);
		if (has_word(text, "begin") || has_word(text, "start") || has_word(text, "savepoint")
			|| has_word(text, "set autocommit")) {
			return true;
		}
	}
	return false;
}

/*
 * A persistent connection of mysqli returns to its pool with its object, transaction included, and
 * others wait for its locks until it is used again. mysqli has a setting for this that costs a
 * ROLLBACK each time, so it is enabled when a transaction is first seen.
 */
static void roll_back_pooled_mysqli(void)
{
	static bool is_on;
	zend_ini_entry *entry = is_on ? NULL : zend_hash_str_find_ptr(EG(ini_directives),
		ZEND_STRL("mysqli.rollback_on_cached_plink"));
	if (entry && entry->on_modify) {
		zend_string *on = zend_string_init("1", 1, false);
		entry->on_modify(entry, on, entry->mh_arg1, entry->mh_arg2, entry->mh_arg3,
			PHP_INI_STAGE_RUNTIME);
		zend_string_release(on);
	}
	is_on = true;
}

/*
 * pgsql does not reset them between requests, so such an object is retained until the request's
 * end.
 */
static bool is_persistent_pgsql(const zend_object *object)
{
	const zend_resource *one;
	const void *connection;
	memcpy(&connection, (const char *) object - object->handlers->offset, sizeof(connection));
	ZEND_HASH_FOREACH_PTR(&EG(persistent_list), one) {
		if (one->ptr == connection) {
			return true;
		}
	} ZEND_HASH_FOREACH_END();
	return false;
}

static void track_connection(const zval *connection, bool autocommit)
{
	if (!connection || Z_TYPE_P(connection) != IS_OBJECT) {
		return;
	}
	zend_object *object = Z_OBJ_P(connection);
	if (mysqli_class && instanceof_function(object->ce, mysqli_class)) {
		roll_back_pooled_mysqli();
	}
	const bool retain = object->ce == pgsql_class ? is_persistent_pgsql(object)
		: is_pdo_sqlite(object) && is_persistent_pdo(object);
	outboard_hold_transaction(object, autocommit, retain);
}

/* The connection is `this` of a method or the first argument of a function; a statement follows. */
void outboard_track_transaction(zend_execute_data *execute_data, bool is_method)
{
	uint32_t at = is_method ? 1 : 2;
	zval *connection = is_method ? ZEND_THIS
		: ZEND_NUM_ARGS() > 0 ? ZEND_CALL_ARG(execute_data, 1) : NULL;
	zval *statement = ZEND_NUM_ARGS() >= at ? ZEND_CALL_ARG(execute_data, at) : NULL;
	if (!statement || Z_TYPE_P(statement) != IS_STRING || opens_transaction(statement)) {
		const zend_string *name = execute_data->func->common.function_name;
		bool by_call = strstr(ZSTR_VAL(name), "autocommit") != NULL;
		bool by_statement = statement && Z_TYPE_P(statement) == IS_STRING
			&& has_word(next_statement(Z_STRVAL_P(statement)), "set");
		track_connection(connection, by_call || by_statement);
	}
}

/* Methods that may begin a transaction. */
static const struct {
	const char *class;
	const char *method;
} beginners[] = {
	{"pdo", "begintransaction"},
	{"pdo", "exec"},
	{"pdo", "query"},
	{"pdo", "prepare"},
	{"sqlite3", "exec"},
	{"sqlite3", "query"},
	{"sqlite3", "querysingle"},
	{"sqlite3", "prepare"},
	{"mysqli", "begin_transaction"},
	{"mysqli", "autocommit"},
	{"mysqli", "query"},
	{"mysqli", "real_query"},
	{"mysqli", "multi_query"},
	{"mysqli", "execute_query"},
};
#define BEGIN_METHODS (sizeof(beginners) / sizeof(beginners[0]))

static zif_handler wrapped_methods[BEGIN_METHODS];

#define MARK_METHOD(at) \
	static void mark_method_##at(INTERNAL_FUNCTION_PARAMETERS) \
	{ \
		outboard_track_transaction(execute_data, true); \
		wrapped_methods[at](INTERNAL_FUNCTION_PARAM_PASSTHRU); \
	}
MARK_METHOD(0)
MARK_METHOD(1)
MARK_METHOD(2)
MARK_METHOD(3)
MARK_METHOD(4)
MARK_METHOD(5)
MARK_METHOD(6)
MARK_METHOD(7)
MARK_METHOD(8)
MARK_METHOD(9)
MARK_METHOD(10)
MARK_METHOD(11)
MARK_METHOD(12)
MARK_METHOD(13)

static const zif_handler method_marks[BEGIN_METHODS] = {
	mark_method_0, mark_method_1, mark_method_2, mark_method_3, mark_method_4,
	mark_method_5, mark_method_6, mark_method_7, mark_method_8, mark_method_9,
	mark_method_10, mark_method_11, mark_method_12, mark_method_13,
};

/* Subclasses have copies of the methods (zend_duplicate_internal_function). */
static void wrap_method(size_t at)
{
	const char *method = beginners[at].method;
	zend_class_entry *root = outboard_class(beginners[at].class);
	zend_class_entry *one;
	ZEND_HASH_FOREACH_PTR(CG(class_table), one) {
		zend_internal_function *function = NULL;
		if (root && one->type == ZEND_INTERNAL_CLASS && instanceof_function(one, root)) {
			function = zend_hash_str_find_ptr(&one->function_table, method, strlen(method));
		}
		if (function && function->handler != method_marks[at]) {
			wrapped_methods[at] = function->handler;
			function->handler = method_marks[at];
		}
	} ZEND_HASH_FOREACH_END();
}

void outboard_transactions_startup(void)
{
	mysqli_class = outboard_class("mysqli");
	pgsql_class = outboard_class("pgsql\\connection");
	pdo_class = outboard_class("pdo");
	sqlite_class = outboard_class("sqlite3");
	for (size_t i = 0; i < BEGIN_METHODS; i++) {
		wrap_method(i);
	}
}
