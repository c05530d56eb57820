/*
 * Persistent connections in coroutines: PHP gives everybody who opens one by the same name the same
 * connection, because a process has one request at a time. Here each coroutine of a request gets
 * one of its own; what nobody has any more is given to the next. So a worker has as many as were
 * ever needed at once, which is what a pool does.
 *
 * PDO keeps them by the data source and a name that the script may give; pgsql by the connection
 * string and the flags, of which it knows two, and pg_connect() is of the same kind. Both are called
 * with a name that is numbered. mysqli and redis have pools of their own.
 *
 * Called by worker_script.c once. Invariant: of two objects that share a connection, both are of one
 * coroutine in one request.
 */
#include "worker_mode.h"
#include "ext/pdo/php_pdo_driver.h"

/* A connection that an object of the script has, or that is being opened. */
typedef struct connection_use {
	zend_string *name;
	uint32_t number; /* among those with this name; 0 is called what the script calls it */
	uint64_t request_id;
	uint32_t coroutine;
	bool opening;
	const zend_object *object;
	uint32_t handle;
	const void *connection;
	struct connection_use *next;
} connection_use;

/* The flag for PHP that an existing connection is not wanted (ext/pgsql/pgsql.c). */
#define PGSQL_CONNECT_FORCE_NEW 2
/* Above all flags that it knows. */
#define PGSQL_NUMBER_SHIFT 8

static connection_use *connections;
static zend_class_entry *pdo_class;
static zif_handler pdo_construct;
static zif_handler pdo_connect;
static zif_handler pgsql_connect;
static zif_handler pgsql_pconnect;
/* The next call of a wrapped function of pgsql is our own. */
static bool is_numbered;

/* PgSql\Connection begins with a pointer to libpq's, as PDO with one to the driver's. */
static const void *connection_of(const zend_object *object)
{
	const void *first;
	memcpy(&first, (const char *) object - object->handlers->offset, sizeof(first));
	return first;
}

/* An object that has gone, or was closed, needs its connection no more. */
static bool is_taken(const connection_use *one)
{
	return one->opening
		|| (one->handle < EG(objects_store).top
			&& IS_OBJ_VALID(EG(objects_store).object_buckets[one->handle])
			&& EG(objects_store).object_buckets[one->handle] == one->object
			&& one->object->handlers->offset >= (int) sizeof(void *)
			&& connection_of(one->object) == one->connection);
}

static void leave(connection_use *gone)
{
	connection_use **at = &connections;
	while (*at != gone) {
		at = &(*at)->next;
	}
	*at = gone->next;
	zend_string_release(gone->name);
	pefree(gone, 1);
}

static void leave_where_nobody_is(void)
{
	connection_use *next;
	for (connection_use *one = connections; one; one = next) {
		next = one->next;
		if (!is_taken(one)) {
			leave(one);
		}
	}
}

/* Whether another coroutine or another request has the connection. */
static bool is_anothers(const zend_string *name, const connection_use *self)
{
	for (const connection_use *one = connections; one; one = one->next) {
		if (one->number == self->number && zend_string_equals(one->name, name)
			&& (one->request_id != self->request_id || one->coroutine != self->coroutine)) {
			return true;
		}
	}
	return false;
}

/* The first that is free; it is the caller's until it leaves it or fills it. */
static connection_use *take(zend_string *name)
{
	connection_use *self = pecalloc(1, sizeof(*self), 1);
	leave_where_nobody_is();
	self->request_id = outboard_active_state ? outboard_active_state->id : 0;
	self->coroutine = (uint32_t) outboard_waiter();
	while (is_anothers(name, self)) {
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
	self->opening = false;
	self->object = object;
	self->handle = object->handle;
	self->connection = connection_of(object);
}

/* As pdo_dbh.c reads it: a string that is no number is part of the name. */
static bool is_persistent(const zval *option)
{
	return Z_TYPE_P(option) == IS_STRING && !is_numeric_string(Z_STRVAL_P(option),
			Z_STRLEN_P(option), NULL, NULL, false)
		? Z_STRLEN_P(option) > 0 : zval_get_long((zval *) option) != 0;
}

static zval *persistence_asked_for(zend_execute_data *call)
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

/* Has the options ask for the connection with the connection_use's number. */
static void number_options(zval *options, const zval *asked, const connection_use *self)
{
	zval numbered;
	ZVAL_STR(&numbered, strpprintf(0, "%s outboard %u",
		Z_TYPE_P(asked) == IS_STRING ? Z_STRVAL_P(asked) : "", self->number));
	SEPARATE_ARRAY(options);
	zend_hash_index_update(Z_ARRVAL_P(options), PDO_ATTR_PERSISTENT, &numbered);
}

/* PDO::__construct() and PDO::connect(), which returns the object. */
static void open_pdo(INTERNAL_FUNCTION_PARAMETERS, zif_handler original)
{
	const zval *asked = outboard_may_suspend() ? persistence_asked_for(execute_data) : NULL;
	if (!asked) {
		original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	connection_use *self = take(strpprintf(0, "PDO\n%s\n%s\n%s\n%s", text_of(execute_data, 1),
		text_of(execute_data, 2), text_of(execute_data, 3),
		Z_TYPE_P(asked) == IS_STRING ? Z_STRVAL_P(asked) : ""));
	if (self->number > 0) {
		number_options(ZEND_CALL_ARG(execute_data, 4), asked, self);
	}
	original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	const zval *object = Z_TYPE(execute_data->This) == IS_OBJECT ? &execute_data->This : return_value;
	if (EG(exception) || Z_TYPE_P(object) != IS_OBJECT) {
		leave(self);
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

/* Calls the function again with flags that tell its connections apart. */
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
	connection_use *self = take(strpprintf(0, "%s\n%s", kind, Z_STRVAL_P(name)));
	call_numbered(execute_data->func, name,
		(flags ? Z_LVAL_P(flags) : 0) | (zend_long) self->number << PGSQL_NUMBER_SHIFT,
		return_value);
	if (Z_TYPE_P(return_value) == IS_OBJECT) {
		fill(self, Z_OBJ_P(return_value));
	} else {
		leave(self);
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

/* Before the script boots, after other wrappers; classes below PDO have copies of its methods. */
void outboard_persistent_startup(void)
{
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
