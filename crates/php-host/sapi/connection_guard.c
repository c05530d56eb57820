/*
 * One coroutine at a time on a connection. A client library keeps the state of a conversation: a
 * second caller would read the first one's answer, or end its conversation by an error. So calls
 * of the extensions that talk to services, and readers of streams, begin by taking what they
 * talk through; who finds it taken gets an exception that names both places, before anything of
 * the first one's is touched.
 *
 * Called by worker_script.c once. Invariants: a connection is taken while a call on it has begun and not
 * returned; a caller that a bailout has carried off holds nothing.
 */
#include "worker_mode.h"
#include "ext/mysqli/php_mysqli_structs.h"
#include "ext/pdo/php_pdo_driver.h"

/* A call that has begun. */
typedef struct {
	const zend_execute_data *call;
	uint32_t coroutine;
} use;

/* By the address of what is talked through. */
static HashTable uses;
/* Where a function keeps the handler that was its own. */
static int slot;
static zend_class_entry *statement;
static zend_class_entry *mysqli_class;
static zend_class_entry *mysqli_stmt_class;
static zend_class_entry *mysqli_result_class;
static int stream_type;

/* Several objects of mysqli share a connection of mysqlnd. */
static const void *connection_of_mysqli(zend_object *object)
{
	const mysqli_object *own = php_mysqli_fetch_object(object);
	const MYSQLI_RESOURCE *resource = own->ptr;
	if (!resource || !resource->ptr) {
		return NULL;
	}
	if (instanceof_function(object->ce, mysqli_stmt_class)) {
		const MYSQL_STMT *prepared = ((const MY_STMT *) resource->ptr)->stmt;
		return prepared && prepared->data ? prepared->data->conn : NULL;
	}
	if (instanceof_function(object->ce, mysqli_result_class)) {
		return ((const MYSQL_RES *) resource->ptr)->conn;
	}
	if (instanceof_function(object->ce, mysqli_class)) {
		const MYSQL *connection = ((const MY_MYSQL *) resource->ptr)->mysql;
		return connection ? connection->data : NULL;
	}
	return NULL;
}

/*
 * What an object talks through. The structures of PDO, PgSql\Connection, Redis, Memcached and
 * CurlHandle begin with a pointer to it, which objects of one persistent connection share.
 */
static const void *connection_of_object(zend_object *object)
{
	const void *first;
	if (statement && instanceof_function(object->ce, statement)) {
		return php_pdo_stmt_fetch_object(object)->dbh;
	}
	if (object->handlers->offset < (int) sizeof(first)) {
		return NULL;
	}
	if (mysqli_class && (instanceof_function(object->ce, mysqli_class)
		|| instanceof_function(object->ce, mysqli_stmt_class)
		|| instanceof_function(object->ce, mysqli_result_class))) {
		return connection_of_mysqli(object);
	}
	memcpy(&first, (const char *) object - object->handlers->offset, sizeof(first));
	return first;
}

static const void *stream_of(const zend_resource *resource)
{
	const php_stream *stream = resource->ptr;
	/* Files are never waited for. */
	return resource->type == stream_type && stream->ops != &php_stream_stdio_ops ? stream : NULL;
}

static const void *connection_of(zend_execute_data *call)
{
	zval *first = &call->This;
	if (Z_TYPE_P(first) != IS_OBJECT) {
		if (ZEND_CALL_NUM_ARGS(call) == 0) {
			return NULL;
		}
		first = ZEND_CALL_ARG(call, 1);
		ZVAL_DEREF(first);
	}
	switch (Z_TYPE_P(first)) {
	case IS_OBJECT:
		return connection_of_object(Z_OBJ_P(first));
	case IS_RESOURCE:
		return stream_of(Z_RES_P(first));
	default:
		return NULL;
	}
}

/* Where the holder waits; NULL when its call is not on its stack any more. */
static const zend_execute_data *waiting_in(const use *holder)
{
	const zend_execute_data *top = outboard_frame_at(holder->coroutine);
	for (const zend_execute_data *frame = top; frame; frame = frame->prev_execute_data) {
		if (frame == holder->call) {
			return top;
		}
	}
	return NULL;
}

/* A line of PHP code. */
typedef struct {
	const char *file;
	uint32_t line;
} place;

/* The innermost line of PHP code of a coroutine that waits. */
static place place_of(const zend_execute_data *frame)
{
	place innermost = {"(unknown)", 0};
	while (frame && !(frame->func && ZEND_USER_CODE(frame->func->type) && frame->opline)) {
		frame = frame->prev_execute_data;
	}
	if (frame) {
		innermost.file = ZSTR_VAL(frame->func->op_array.filename);
		innermost.line = frame->opline->lineno;
	}
	return innermost;
}

/* Throws to the running coroutine what it needs to know of the one that waits there. */
ZEND_COLD void outboard_throw_connection_in_use(const zend_execute_data *there)
{
	place at = place_of(there);
	place here = place_of(EG(current_execute_data));
	if (!EG(exception)) {
		zend_throw_exception_ex(outboard_connection_in_use_class, 0,
			"this connection is in use: one coroutine waits on it at %s:%u, another wants it at "
			"%s:%u; give each a connection of its own", at.file, at.line, here.file, here.line);
	}
}

/* Some extensions put an exception of theirs in the place of the end that was asked for. */
static void end_if_cancelled(void)
{
	if (outboard_is_cancelled() && EG(exception) && !zend_is_unwind_exit(EG(exception))
		&& !zend_is_graceful_exit(EG(exception))) {
		zend_clear_exception();
	}
	outboard_throw_if_cancelled();
}

static void free_use(zval *entry)
{
	efree(Z_PTR_P(entry));
}

static ZEND_FUNCTION(taking)
{
	const zif_handler original = (zif_handler) execute_data->func->internal_function.reserved[slot];
	/* Nobody else has what is being made, and PDO's constructor may have freed it meanwhile. */
	const bool is_making = execute_data->func->common.fn_flags & ZEND_ACC_CTOR;
	const void *connection =
		outboard_may_suspend() && !is_making ? connection_of(execute_data) : NULL;
	const zend_ulong key = (zend_ulong) (uintptr_t) connection;
	const uint32_t self = (uint32_t) outboard_waiter();
	if (!connection) {
		original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		if (is_making) {
			end_if_cancelled();
		}
		return;
	}
	const use *holder = zend_hash_index_find_ptr(&uses, key);
	const bool is_own = holder && holder->coroutine == self;
	const zend_execute_data *there = holder && !is_own ? waiting_in(holder) : NULL;
	if (there) {
		outboard_throw_connection_in_use(there);
		return;
	}
	if (!is_own) {
		use mine = {.call = execute_data, .coroutine = self};
		zend_hash_index_update_mem(&uses, key, &mine, sizeof(mine));
	}
	original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (!is_own) {
		zend_hash_index_del(&uses, key);
	}
	end_if_cancelled();
}

static void take_first(zend_function *function)
{
	zend_internal_function *internal = &function->internal_function;
	if (function->type == ZEND_INTERNAL_FUNCTION && internal->handler
		&& internal->handler != ZEND_FN(taking)) {
		internal->reserved[slot] = (void *) internal->handler;
		internal->handler = ZEND_FN(taking);
	}
}

static zend_class_entry *class_named(const char *name)
{
	return zend_hash_str_find_ptr(CG(class_table), name, strlen(name));
}

/* Their methods, and those that classes below them have of their own. */
static const char *const classes[] = {
	"pdo", "pdostatement", "mysqli", "mysqli_stmt", "mysqli_result", "redis", "rediscluster",
	"redissentinel", "memcached",
};

/* Functions whose names begin so, and take the connection first. */
static const char *const prefixes[] = {"mysqli_", "pg_", "curl_exec", "curl_setopt", "curl_reset"};

/* What reads from a stream; another may write to it meanwhile. */
static const char *const readers[] = {
	"fgets", "fread", "fgetc", "fgetcsv", "fscanf", "fpassthru", "stream_get_contents",
	"stream_get_line", "stream_copy_to_stream", "stream_socket_enable_crypto",
};

static void take_first_in_classes(void)
{
	zend_class_entry *one;
	for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++) {
		const zend_class_entry *root = class_named(classes[i]);
		ZEND_HASH_FOREACH_PTR(CG(class_table), one) {
			zend_function *function;
			if (root && one->type == ZEND_INTERNAL_CLASS && instanceof_function(one, root)) {
				ZEND_HASH_FOREACH_PTR(&one->function_table, function) {
					take_first(function);
				} ZEND_HASH_FOREACH_END();
			}
		} ZEND_HASH_FOREACH_END();
	}
}

static void take_first_in_functions(void)
{
	zend_function *function;
	ZEND_HASH_FOREACH_PTR(CG(function_table), function) {
		const char *name = ZSTR_VAL(function->common.function_name);
		for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
			if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
				take_first(function);
			}
		}
		for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++) {
			if (strcmp(name, readers[i]) == 0) {
				take_first(function);
			}
		}
	} ZEND_HASH_FOREACH_END();
}

/* Before the script boots. */
void outboard_connection_guard_startup(void)
{
	slot = zend_get_resource_handle("outboard");
	if (slot < 0) {
		return;
	}
	zend_hash_init(&uses, 8, NULL, free_use, false);
	statement = class_named("pdostatement");
	mysqli_class = class_named("mysqli");
	mysqli_stmt_class = class_named("mysqli_stmt");
	mysqli_result_class = class_named("mysqli_result");
	stream_type = php_file_le_stream();
	take_first_in_classes();
	take_first_in_functions();
}
