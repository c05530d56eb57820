/*
 * Spans of database calls, of the entity store's, and of waits for locks: what people look for first in
 * a slow request. Each function is replaced by one that calls it, and reports a span if the request takes
 * spans.
 *
 * Called by a hook once, after all extensions have started. Invariants: an extension that is not
 * loaded is left alone; without a trace, a call costs one comparison more; the text of a statement
 * leaves the process only if the configuration asks for it.
 */
#include "tracing/tracing.h"
#include "ext/pdo/php_pdo_driver.h"

/* A shorter wait for a lock is no wait. */
#define LOCK_US 1000
#define MAX_OPERATION 16

typedef enum {
	CONNECT,
	/* The statement is the first string among the arguments. */
	QUERY,
	/* The statement is in the object, if anywhere. */
	EXECUTE,
	LOCK,
	/* A batch for the entity store (runtime/kv.php). */
	ENTITIES,
} kind;

typedef enum { PDO, MYSQL, POSTGRESQL, SQLITE, OUTBOARD, NO_DATABASE } family;

typedef struct {
	const char *class; /* NULL: a function */
	const char *function;
	kind kind;
	family family;
	zif_handler next;
} call;

#define CALLS(CALL) \
	CALL(pdo_construct, "pdo", "__construct", CONNECT, PDO) \
	CALL(pdo_query, "pdo", "query", QUERY, PDO) \
	CALL(pdo_exec, "pdo", "exec", QUERY, PDO) \
	CALL(pdo_commit, "pdo", "commit", EXECUTE, PDO) \
	CALL(pdo_execute, "pdostatement", "execute", EXECUTE, PDO) \
	CALL(mysqli_connect, NULL, "mysqli_connect", CONNECT, MYSQL) \
	CALL(mysqli_real_connect, NULL, "mysqli_real_connect", CONNECT, MYSQL) \
	CALL(mysqli_construct_m, "mysqli", "__construct", CONNECT, MYSQL) \
	CALL(mysqli_real_connect_m, "mysqli", "real_connect", CONNECT, MYSQL) \
	CALL(mysqli_query, NULL, "mysqli_query", QUERY, MYSQL) \
	CALL(mysqli_query_m, "mysqli", "query", QUERY, MYSQL) \
	CALL(mysqli_real_query, NULL, "mysqli_real_query", QUERY, MYSQL) \
	CALL(mysqli_real_query_m, "mysqli", "real_query", QUERY, MYSQL) \
	CALL(mysqli_multi_query, NULL, "mysqli_multi_query", QUERY, MYSQL) \
	CALL(mysqli_multi_query_m, "mysqli", "multi_query", QUERY, MYSQL) \
	CALL(mysqli_execute_query, NULL, "mysqli_execute_query", QUERY, MYSQL) \
	CALL(mysqli_execute_query_m, "mysqli", "execute_query", QUERY, MYSQL) \
	CALL(mysqli_stmt_execute, NULL, "mysqli_stmt_execute", EXECUTE, MYSQL) \
	CALL(mysqli_stmt_execute_m, "mysqli_stmt", "execute", EXECUTE, MYSQL) \
	CALL(mysqli_commit, NULL, "mysqli_commit", EXECUTE, MYSQL) \
	CALL(mysqli_commit_m, "mysqli", "commit", EXECUTE, MYSQL) \
	CALL(pg_connect, NULL, "pg_connect", CONNECT, POSTGRESQL) \
	CALL(pg_pconnect, NULL, "pg_pconnect", CONNECT, POSTGRESQL) \
	CALL(pg_query, NULL, "pg_query", QUERY, POSTGRESQL) \
	CALL(pg_query_params, NULL, "pg_query_params", QUERY, POSTGRESQL) \
	CALL(pg_execute, NULL, "pg_execute", EXECUTE, POSTGRESQL) \
	CALL(sqlite3_open, "sqlite3", "__construct", CONNECT, SQLITE) \
	CALL(sqlite3_query, "sqlite3", "query", QUERY, SQLITE) \
	CALL(sqlite3_query_single, "sqlite3", "querysingle", QUERY, SQLITE) \
	CALL(sqlite3_exec, "sqlite3", "exec", QUERY, SQLITE) \
	CALL(sqlite3_stmt_execute, "sqlite3stmt", "execute", EXECUTE, SQLITE) \
	CALL(entities, NULL, "outboard\\engine\\entities", ENTITIES, OUTBOARD) \
	CALL(session_start, NULL, "session_start", LOCK, NO_DATABASE) \
	CALL(flock, NULL, "flock", LOCK, NO_DATABASE) \
	CALL(sem_acquire, NULL, "sem_acquire", LOCK, NO_DATABASE)

#define INDEX(id, ...) AT_##id,
enum { CALLS(INDEX) COUNT };

#define ENTRY(id, class, function, kind, family) {class, function, kind, family, NULL},
static call calls[] = {CALLS(ENTRY)};

static const pdo_driver_t *driver_of(zend_execute_data *execute_data)
{
	const zend_class_entry *statement = outboard_class("pdostatement");
	zval *this = getThis();
	if (!this) {
		return NULL;
	}
	const pdo_dbh_t *connection = statement && instanceof_function(Z_OBJCE_P(this), statement)
		? Z_PDO_STMT_P(this)->dbh
		: Z_PDO_DBH_P(this);
	return connection ? connection->driver : NULL;
}

/* The names of OpenTelemetry's semantic conventions. */
static zend_string *system_of(const call *one, zend_execute_data *execute_data)
{
	const pdo_driver_t *driver;
	switch (one->family) {
		case MYSQL:
			return zend_string_init("smysql", sizeof("smysql") - 1, 0);
		case POSTGRESQL:
			return zend_string_init("spostgresql", sizeof("spostgresql") - 1, 0);
		case OUTBOARD:
			return zend_string_init("soutboard", sizeof("soutboard") - 1, 0);
		case SQLITE:
			return zend_string_init("ssqlite", sizeof("ssqlite") - 1, 0);
		case PDO:
			driver = driver_of(execute_data);
			if (!driver || !driver->driver_name) {
				return zend_string_init("sother_sql", sizeof("sother_sql") - 1, 0);
			}
			return strpprintf(0, "s%s", strcmp(driver->driver_name, "pgsql") ? driver->driver_name : "postgresql");
		default:
			return NULL;
	}
}

static const zend_string *statement_of(const call *one, zend_execute_data *execute_data)
{
	if (one->kind == QUERY) {
		for (uint32_t i = 1; i <= ZEND_NUM_ARGS(); i++) {
			zval *argument = ZEND_CALL_ARG(execute_data, i);
			ZVAL_DEREF(argument);
			if (Z_TYPE_P(argument) == IS_STRING) {
				return Z_STR_P(argument);
			}
		}
	} else if (one == &calls[AT_pdo_execute]) {
		return Z_PDO_STMT_P(getThis())->query_string;
	}
	return NULL;
}

static const zend_string *string_argument(zend_execute_data *execute_data, uint32_t number)
{
	if (ZEND_NUM_ARGS() < number) {
		return NULL;
	}
	const zval *argument = ZEND_CALL_ARG(execute_data, number);
	return Z_TYPE_P(argument) == IS_STRING ? Z_STR_P(argument) : NULL;
}

/* By the first byte of the batch (the gateway's entities/batch.rs). */
static const char *entities_operation(zend_execute_data *execute_data)
{
	static const char *const names[] = {"ENTITIES", "READ", "WRITE", "SCAN"};
	const zend_string *batch = string_argument(execute_data, 2);
	const unsigned char kind = batch ? (unsigned char) ZSTR_VAL(batch)[0] : 0;
	return names[kind < 4 ? kind : 0];
}

/* The first word of a statement in capitals, or what the function does. */
static size_t operation_of(const call *one, zend_execute_data *execute_data, const zend_string *statement, char *name)
{
	size_t len = 0, at = 0;
	if (statement) {
		while (at < ZSTR_LEN(statement) && strchr(" \t\r\n(", ZSTR_VAL(statement)[at])) {
			at++;
		}
		while (at < ZSTR_LEN(statement) && len < MAX_OPERATION && isalpha((unsigned char) ZSTR_VAL(statement)[at])) {
			name[len++] = (char) toupper((unsigned char) ZSTR_VAL(statement)[at++]);
		}
	}
	if (len == 0) {
		const char *known = one->kind == ENTITIES ? entities_operation(execute_data)
			: one->kind == CONNECT ? "CONNECT" : one->kind == QUERY ? "QUERY"
			: strstr(one->function, "commit") ? "COMMIT" : "EXECUTE";
		len = strlen(known);
		memcpy(name, known, len);
	}
	return len;
}

/* The connection or the statement of a call. */
static zval *subject_of(zend_execute_data *execute_data)
{
	if (getThis()) {
		return getThis();
	}
	return ZEND_NUM_ARGS() > 0 ? ZEND_CALL_ARG(execute_data, 1) : NULL;
}

/* How many rows came or were changed; -1: unknown. */
static zend_long rows_of(const call *one, zend_execute_data *execute_data, zval *result)
{
	const bool has_rows = one->kind == QUERY || (one->kind == EXECUTE && !strstr(one->function, "commit"));
	if (has_rows && one->family == MYSQL) {
		return outboard_rows_of_mysqli(subject_of(execute_data), result);
	}
	if (has_rows && one->family == POSTGRESQL) {
		return outboard_rows_of_pgsql(result);
	}
	switch ((size_t) (one - calls)) {
		case AT_pdo_exec:
			return Z_TYPE_P(result) == IS_LONG ? Z_LVAL_P(result) : -1;
		case AT_pdo_query:
			return Z_TYPE_P(result) == IS_OBJECT ? Z_PDO_STMT_P(result)->row_count : -1;
		case AT_pdo_execute:
			return Z_TYPE_P(result) == IS_TRUE ? Z_PDO_STMT_P(getThis())->row_count : -1;
		default:
			return -1;
	}
}

#define ATTRIBUTE(texts, key, value) outboard_span_attribute(texts, key, sizeof(key) - 1, value)

static void report(const call *one, const outboard_span *span, zend_execute_data *execute_data, zval *result)
{
	char operation[MAX_OPERATION];
	outboard_span_texts texts;
	texts.count = 0;
	const bool failed = Z_TYPE_P(result) == IS_FALSE;
	if (one->kind == LOCK) {
		outboard_span_end(span, one->function, strlen(one->function), failed, &texts);
		return;
	}
	const zend_string *statement = statement_of(one, execute_data);
	const size_t len = operation_of(one, execute_data, statement, operation);
	ATTRIBUTE(&texts, "db.system.name", system_of(one, execute_data));
	ATTRIBUTE(&texts, "db.operation.name", strpprintf(0, "s%.*s", (int) len, operation));
	const zend_long rows = EG(exception) ? -1 : rows_of(one, execute_data, result);
	if (rows >= 0) {
		ATTRIBUTE(&texts, "db.response.returned_rows", strpprintf(0, "i" ZEND_LONG_FMT, rows));
	}
	if (statement && outboard_now.request->trace_detail > 1) {
		/* The ring cuts it as well; this bounds the copy. */
		ATTRIBUTE(&texts, "db.query.text", strpprintf(0, "s%.1024s", ZSTR_VAL(statement)));
	}
	outboard_span_end(span, operation, len, failed, &texts);
}

static void run(const call *one, INTERNAL_FUNCTION_PARAMETERS)
{
	outboard_span span;
	const bool is_traced = outboard_span_begin(&span);
	OUTBOARD_ASSERT(one->next);
	if (EXPECTED(!is_traced)) {
		one->next(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	one->next(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (!outboard_now.request || (one->kind == LOCK && outboard_span_us(&span) < LOCK_US)) {
		outboard_span_abandon(&span);
		return;
	}
	report(one, &span, execute_data, return_value);
}

#define WRAPPER(id, ...) \
	static void run_##id(INTERNAL_FUNCTION_PARAMETERS) \
	{ \
		run(&calls[AT_##id], INTERNAL_FUNCTION_PARAM_PASSTHRU); \
	}
CALLS(WRAPPER)

#define HANDLER(id, ...) run_##id,
static const zif_handler handlers[] = {CALLS(HANDLER)};

static void wrap(call *one, zif_handler handler, const HashTable *functions)
{
	zend_internal_function *function =
		zend_hash_str_find_ptr(functions, one->function, strlen(one->function));
	if (!function || function->type != ZEND_INTERNAL_FUNCTION) {
		return;
	}
	/* A class that an extension derives has a copy of each method (zend_duplicate_internal_function). */
	if (!one->next || function->handler == one->next) {
		one->next = function->handler;
		function->handler = handler;
	}
}

void outboard_database_span_startup(void)
{
	zend_class_entry *class;
	for (size_t i = 0; i < COUNT; i++) {
		call *one = &calls[i];
		const zend_class_entry *base = one->class ? outboard_class(one->class) : NULL;
		if (!one->class) {
			wrap(one, handlers[i], CG(function_table));
		}
		if (!base) {
			continue;
		}
		wrap(one, handlers[i], &base->function_table);
		ZEND_HASH_FOREACH_PTR(CG(class_table), class) {
			if (one->next && class != base && instanceof_function(class, base)) {
				wrap(one, handlers[i], &class->function_table);
			}
		} ZEND_HASH_FOREACH_END();
	}
}
