/*
 * One coroutine at a time per connection. A client library keeps protocol state: a second caller
 * would read the first one's response, or break its exchange. So calls of the extensions that talk
 * to services, and functions that read streams, acquire the connection first; if another coroutine
 * has it, they throw an exception that names both places, before any byte is exchanged.
 *
 * Called by the hook script_start once. Invariants: a connection is held from the beginning of a call
 * until it returns; a caller that a bailout has removed holds nothing.
 */
#include "coroutine/coroutine.h"
#include "ext/mysqli/php_mysqli_structs.h"
#include "ext/pdo/php_pdo_driver.h"
#include "ext/spl/spl_exceptions.h"

/* A call in progress. */
typedef struct {
	const zend_execute_data *call;
	uint32_t coroutine;
} use;

/* Keyed by the address of the connection. */
static HashTable uses;
/* Index in `reserved` of the function's original handler. */
static int slot;
static zend_class_entry *statement;
static zend_class_entry *mysqli_class;
static zend_class_entry *mysqli_stmt_class;
static zend_class_entry *mysqli_result_class;
static int stream_type;
static zend_class_entry *in_use_class;

/* Several objects of mysqli share one connection of mysqlnd. */
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
 * The connection of an object. The structures of PDO, PgSql\Connection, FTP\Connection, LDAP\Connection,
 * IMAP\Connection, Redis, Memcached and CurlHandle begin with a pointer to it, which objects of one persistent
 * connection share.
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
	/* Reading a file never waits. */
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

/* Where the holder waits; NULL if its call is no longer on its stack. */
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
} source_line;

/* The innermost line of PHP code of a waiting coroutine. */
static source_line line_of(const zend_execute_data *frame)
{
	source_line innermost = {"(unknown)", 0};
	while (frame && !(frame->func && ZEND_USER_CODE(frame->func->type) && frame->opline)) {
		frame = frame->prev_execute_data;
	}
	if (frame) {
		innermost.file = ZSTR_VAL(frame->func->op_array.filename);
		innermost.line = frame->opline->lineno;
	}
	return innermost;
}

/* Throws in the running coroutine; `there` is the frame of the one that waits. */
ZEND_COLD void outboard_throw_connection_in_use(const zend_execute_data *there)
{
	source_line at = line_of(there);
	source_line here = line_of(EG(current_execute_data));
	if (!EG(exception)) {
		zend_throw_exception_ex(in_use_class, 0,
			"this connection is in use: one coroutine waits on it at %s:%u, another uses it at "
			"%s:%u; use one connection per coroutine", at.file, at.line, here.file, here.line);
	}
}

/* Some extensions replace the exit of a cancelled coroutine by their own exception. */
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

static ZEND_FUNCTION(guarded)
{
	const zif_handler original = (zif_handler) execute_data->func->internal_function.reserved[slot];
	OUTBOARD_ASSERT(original);
	/* A new object is not shared yet, and PDO's constructor may have freed its connection. */
	const bool is_constructor = execute_data->func->common.fn_flags & ZEND_ACC_CTOR;
	const void *connection =
		outboard_may_suspend() && !is_constructor ? connection_of(execute_data) : NULL;
	const zend_ulong key = (zend_ulong) (uintptr_t) connection;
	const uint32_t self = (uint32_t) outboard_waiter();
	if (!connection) {
		original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		if (is_constructor) {
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

static void guard(zend_function *function)
{
	zend_internal_function *internal = &function->internal_function;
	if (function->type == ZEND_INTERNAL_FUNCTION && internal->handler
		&& internal->handler != ZEND_FN(guarded)) {
		internal->reserved[slot] = (void *) internal->handler;
		internal->handler = ZEND_FN(guarded);
	}
}

/* The classes whose methods are guarded, with their subclasses. */
static const char *const classes[] = {
	"pdo", "pdostatement", "mysqli", "mysqli_stmt", "mysqli_result", "redis", "rediscluster",
	"redissentinel", "memcached",
};

/* Prefixes of functions whose first argument is the connection. */
static const char *const prefixes[] = {
	"mysqli_", "pg_", "ftp_", "ldap_", "imap_", "curl_exec", "curl_setopt", "curl_reset",
};

/* Functions that read a stream; another coroutine may write to it. */
static const char *const readers[] = {
	"fgets", "fread", "fgetc", "fgetcsv", "fscanf", "fpassthru", "stream_get_contents",
	"stream_get_line", "stream_copy_to_stream", "stream_socket_enable_crypto",
};

static void guard_classes(void)
{
	zend_class_entry *one;
	for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++) {
		const zend_class_entry *root = outboard_class(classes[i]);
		ZEND_HASH_FOREACH_PTR(CG(class_table), one) {
			zend_function *function;
			if (root && one->type == ZEND_INTERNAL_CLASS && instanceof_function(one, root)) {
				ZEND_HASH_FOREACH_PTR(&one->function_table, function) {
					guard(function);
				} ZEND_HASH_FOREACH_END();
			}
		} ZEND_HASH_FOREACH_END();
	}
}

static void guard_functions(void)
{
	zend_function *function;
	ZEND_HASH_FOREACH_PTR(CG(function_table), function) {
		const char *name = ZSTR_VAL(function->common.function_name);
		for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
			if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
				guard(function);
			}
		}
		for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++) {
			if (strcmp(name, readers[i]) == 0) {
				guard(function);
			}
		}
	} ZEND_HASH_FOREACH_END();
}

/* Outboard\ConnectionInUse, while the engine's modules start. */
void outboard_connection_guard_class(void)
{
	zend_class_entry in_use;
	INIT_NS_CLASS_ENTRY(in_use, "Outboard", "ConnectionInUse", NULL);
	in_use_class = zend_register_internal_class_ex(&in_use, spl_ce_LogicException);
	OUTBOARD_ASSERT(in_use_class);
}

void outboard_connection_guard_startup(const outboard_start *start)
{
	(void) start;
	slot = zend_get_resource_handle("outboard");
	if (slot < 0) {
		return;
	}
	zend_hash_init(&uses, 8, NULL, free_use, false);
	statement = outboard_class("pdostatement");
	mysqli_class = outboard_class("mysqli");
	mysqli_stmt_class = outboard_class("mysqli_stmt");
	mysqli_result_class = outboard_class("mysqli_result");
	stream_type = php_file_le_stream();
	guard_classes();
	guard_functions();
}
