/*
 * Persistent connections in coroutines. PHP shares one connection among all who open it by the same
 * name, because a process has one request at a time. Here each coroutine of a request gets its own
 * connection, and an unused one goes to the next: a pool as large as was ever needed at once.
 *
 * PDO identifies them by the data source and an optional name; pgsql, pg_connect() included, by the
 * connection string and flags, of which it uses two. Both are called with a number added. mysqli
 * and redis have their own pools.
 *
 * Called by the hook script_start once. Invariant: objects that share a connection belong to one
 * coroutine in one request.
 */
#include "coroutine/coroutine.h"
#include "ext/pdo/php_pdo_driver.h"

/* A connection that an object of the script has, or that is being opened. */
typedef struct connection_use {
	zend_string *name;
	uint32_t number; /* among those with this name; 0: the name as given */
	uint64_t request_id;
	uint32_t coroutine;
	bool opening;
	const zend_object *object;
	uint32_t handle;
	const void *connection;
	struct connection_use *next;
} connection_use;

/* The flag that forbids PHP to reuse a connection (ext/pgsql/pgsql.c). */
#define PGSQL_CONNECT_FORCE_NEW 2
/* Above all flags of pgsql. */
#define PGSQL_NUMBER_SHIFT 8

static connection_use *connections;
static zend_class_entry *pdo_class;
static zif_handler pdo_construct;
static zif_handler pdo_connect;
static zif_handler pgsql_connect;
static zif_handler pgsql_pconnect;
/* The next call of a wrapped function of pgsql comes from this file. */
static bool is_numbered;

/* PgSql\Connection begins with a pointer to libpq's connection, PDO with one to the driver's. */
static const void *connection_of(const zend_object *object)
{
	const void *first;
	memcpy(&first, (const char *) object - object->handlers->offset, sizeof(first));
	return first;
}

/* An object that was freed or closed uses no connection. */
static bool is_in_use(const connection_use *one)
{
	return one->opening
		|| (one->handle < EG(objects_store).top
			&& IS_OBJ_VALID(EG(objects_store).object_buckets[one->handle])
			&& EG(objects_store).object_buckets[one->handle] == one->object
			&& one->object->handlers->offset >= (int) sizeof(void *)
			&& connection_of(one->object) == one->connection);
}

static void release(connection_use *unused)
{
	connection_use **at = &connections;
	while (*at != unused) {
		OUTBOARD_ASSERT(*at);
		at = &(*at)->next;
	}
	*at = unused->next;
	zend_string_release(unused->name);
	pefree(unused, 1);
}

static void release_unused(void)
{
	connection_use *next;
	for (connection_use *one = connections; one; one = next) {
		next = one->next;
		if (!is_in_use(one)) {
			release(one);
		}
	}
}

/* Whether another coroutine or request uses the connection. */
static bool is_used_by_other(const zend_string *name, const connection_use *self)
{
	for (const connection_use *one = connections; one; one = one->next) {
		if (one->number == self->number && zend_string_equals(one->name, name)
			&& (one->request_id != self->request_id || one->coroutine != self->coroutine)) {
			return true;
		}
	}
	return false;
}

/* Reserves the first free number, until `release` or `fill`. */
static connection_use *reserve(zend_string *name)
{
	connection_use *self = pecalloc(1, sizeof(*self), 1);
	release_unused();
	self->request_id = outboard_now.state ? outboard_now.state->id : 0;
	self->coroutine = (uint32_t) outboard_waiter();
	while (is_used_by_other(name, self)) {
		self->number++;
	}
	self->name = name;
	self->opening = true;
	self->next = connections;
	connections = self;
	return self;
}

static void fill(connection_use *self, const zend_object *object)
{
	OUTBOARD_ASSERT(self->opening);
	self->opening = false;
	self->object = object;
	self->handle = object->handle;
	self->connection = connection_of(object);
}

/* As in pdo_dbh.c: a string that is not a number is part of the name. */
static bool is_persistent(const zval *option)
{
	return Z_TYPE_P(option) == IS_STRING && !is_numeric_string(Z_STRVAL_P(option),
			Z_STRLEN_P(option), NULL, NULL, false)
		? Z_STRLEN_P(option) > 0 : zval_get_long((zval *) option) != 0;
}

static zval *persistence_option(zend_execute_data *call)
{
	zval *options = ZEND_CALL_NUM_ARGS(call) >= 4 ? ZEND_CALL_ARG(call, 4) : NULL;
	zval *option = options && Z_TYPE_P(options) == IS_ARRAY
		? zend_hash_index_find_deref(Z_ARRVAL_P(options), PDO_ATTR_PERSISTENT) : NULL;
	return option && is_persistent(option) ? option : NULL;
}

static const char *text_of(zend_execute_data *call, uint32_t argument)
{
	const zval *value = ZEND_CALL_ARG(call, argument);
	return Z_TYPE_P(value) == IS_STRING ? Z_STRVAL_P(value) : "";
}

/* Replaces the persistence option by a numbered name. */
static void number_options(zval *options, const zval *option, const connection_use *self)
{
	zval numbered;
	ZVAL_STR(&numbered, strpprintf(0, "%s outboard %u",
		Z_TYPE_P(option) == IS_STRING ? Z_STRVAL_P(option) : "", self->number));
	SEPARATE_ARRAY(options);
	zend_hash_index_update(Z_ARRVAL_P(options), PDO_ATTR_PERSISTENT, &numbered);
}

/* PDO::__construct() and PDO::connect(), which returns the object. */
static void open_pdo(INTERNAL_FUNCTION_PARAMETERS, zif_handler original)
{
	const zval *option = outboard_may_suspend() ? persistence_option(execute_data) : NULL;
	if (!option) {
		original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	connection_use *self = reserve(strpprintf(0, "PDO\n%s\n%s\n%s\n%s", text_of(execute_data, 1),
		text_of(execute_data, 2), text_of(execute_data, 3),
		Z_TYPE_P(option) == IS_STRING ? Z_STRVAL_P(option) : ""));
	if (self->number > 0) {
		number_options(ZEND_CALL_ARG(execute_data, 4), option, self);
	}
	original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	const zval *object = Z_TYPE(execute_data->This) == IS_OBJECT ? &execute_data->This : return_value;
	if (EG(exception) || Z_TYPE_P(object) != IS_OBJECT) {
		release(self);
	} else {
		fill(self, Z_OBJ_P(object));
	}
}

static ZEND_FUNCTION(numbered_construct)
{
	open_pdo(INTERNAL_FUNCTION_PARAM_PASSTHRU, pdo_construct);
}

static ZEND_FUNCTION(numbered_connect)
{
	open_pdo(INTERNAL_FUNCTION_PARAM_PASSTHRU, pdo_connect);
}

/* Calls the function again with flags that include the number. */
static void call_numbered(zend_function *function, zval *name, zend_long flags, zval *return_value)
{
	zval arguments[2];
	ZVAL_COPY_VALUE(&arguments[0], name);
	ZVAL_LONG(&arguments[1], flags);
	is_numbered = true;
	zend_call_known_function(function, NULL, NULL, return_value, 2, arguments, NULL);
	is_numbered = false;
}

static void open_pgsql(INTERNAL_FUNCTION_PARAMETERS, zif_handler original, const char *kind)
{
	zval *name = ZEND_NUM_ARGS() > 0 ? ZEND_CALL_ARG(execute_data, 1) : NULL;
	zval *flags = ZEND_NUM_ARGS() > 1 ? ZEND_CALL_ARG(execute_data, 2) : NULL;
	const bool is_own = is_numbered;
	is_numbered = false;
	if (is_own || !outboard_may_suspend() || !name || Z_TYPE_P(name) != IS_STRING
		|| ZEND_NUM_ARGS() > 2 || (flags && Z_TYPE_P(flags) != IS_LONG)
		|| (original == pgsql_connect && flags && (Z_LVAL_P(flags) & PGSQL_CONNECT_FORCE_NEW))) {
		original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	connection_use *self = reserve(strpprintf(0, "%s\n%s", kind, Z_STRVAL_P(name)));
	call_numbered(execute_data->func, name,
		(flags ? Z_LVAL_P(flags) : 0) | (zend_long) self->number << PGSQL_NUMBER_SHIFT,
		return_value);
	if (Z_TYPE_P(return_value) == IS_OBJECT) {
		fill(self, Z_OBJ_P(return_value));
	} else {
		release(self);
	}
}

static ZEND_FUNCTION(numbered_pg_connect)
{
	open_pgsql(INTERNAL_FUNCTION_PARAM_PASSTHRU, pgsql_connect, "pg_connect");
}

static ZEND_FUNCTION(numbered_pg_pconnect)
{
	open_pgsql(INTERNAL_FUNCTION_PARAM_PASSTHRU, pgsql_pconnect, "pg_pconnect");
}

static void wrap(HashTable *functions, const char *name, zif_handler *next, zif_handler with)
{
	zend_function *function = zend_hash_str_find_ptr(functions, name, strlen(name));
	if (function && function->type == ZEND_INTERNAL_FUNCTION
		&& function->internal_function.handler != with) {
		*next = function->internal_function.handler;
		function->internal_function.handler = with;
	}
}

/* Runs after other wrappers; subclasses of PDO have copies of its methods. */
void outboard_persistent_startup(const outboard_start *start)
{
	(void) start;
	zend_class_entry *one;
	pdo_class = zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("pdo"));
	ZEND_HASH_FOREACH_PTR(CG(class_table), one) {
		if (pdo_class && one->type == ZEND_INTERNAL_CLASS && instanceof_function(one, pdo_class)) {
			wrap(&one->function_table, "__construct", &pdo_construct, ZEND_FN(numbered_construct));
			wrap(&one->function_table, "connect", &pdo_connect, ZEND_FN(numbered_connect));
		}
	} ZEND_HASH_FOREACH_END();
	wrap(CG(function_table), "pg_connect", &pgsql_connect, ZEND_FN(numbered_pg_connect));
	wrap(CG(function_table), "pg_pconnect", &pgsql_pconnect, ZEND_FN(numbered_pg_pconnect));
}
