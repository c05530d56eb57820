/*
 * Prepared statements. Those of the boot: the server knows them by numbers of the connection that was closed, so each is
 * prepared again before it is executed for the first time in a request. What they do to a session is noted as of any
 * statement.
 *
 * Called by connections/mysql.c. Invariant: a number of a closed connection is never sent: another statement may
 * have it.
 */
#include "connections/mysql.h"

typedef struct statement {
	MYSQLND_STMT *stmt;
	outboard_bytes query;
	bool is_stale;
	struct statement *next;
} statement;

static MYSQLND_CLASS_METHODS_TYPE(mysqlnd_stmt) methods;
static statement *statements;

static statement *find(const MYSQLND_STMT *stmt)
{
	statement *one = statements;
	while (one && one->stmt != stmt) {
		one = one->next;
	}
	return one;
}

static enum_func_status prepare_noted(MYSQLND_STMT *const stmt, const char *const query, const size_t len)
{
	const enum_func_status status = methods.prepare(stmt, query, len);
	statement *one = find(stmt);
	if (one) {
		one->is_stale = false;
	}
	if (status != PASS || !outboard_connections_in_boot()) {
		return status;
	}
	if (!one) {
		one = pecalloc(1, sizeof(*one), 1);
		one->stmt = stmt;
		one->next = statements;
		statements = one;
	}
	one->query.len = 0;
	outboard_bytes_add(&one->query, query, len);
	return status;
}

/* False: the connection cannot be opened, or the server refuses the statement. */
static bool prepare_again(MYSQLND_STMT *stmt)
{
	statement *one = statements ? find(stmt) : NULL;
	if (!one || !one->is_stale) {
		return true;
	}
	MYSQLND_STMT_DATA *data = stmt->data;
	mysql_connection *connection = outboard_mysql_find(data->conn);
	if (!connection || !outboard_mysql_wake(connection) || !connection->is_open) {
		return false;
	}
	/* It is not freed: that would close the statement. */
	MYSQLND_STMT *fresh = data->conn->m->stmt_init(data->conn);
	if (!fresh || methods.prepare(fresh, one->query.bytes, one->query.len) != PASS
		|| fresh->data->field_count != data->field_count || fresh->data->param_count != data->param_count) {
		return false;
	}
	OUTBOARD_ASSERT(connection->is_open && !connection->is_dormant);
	data->stmt_id = fresh->data->stmt_id;
	data->send_types_to_server = 1;
	one->is_stale = false;
	return true;
}

static enum_func_status fail(MYSQLND_STMT *stmt)
{
	static const char why[] = "The statement was prepared before the snapshot and cannot be prepared again";
	MYSQLND_ERROR_INFO *error = stmt->data->error_info;
	if (!error->error_no) {
		error->m->set_client_error(error, CR_SERVER_GONE_ERROR, "HY000", why);
	}
	return FAIL;
}

/* In the boot: it may change the session, as any other statement. */
static mysql_connection *note_execution(const MYSQLND_STMT *stmt)
{
	const statement *one = outboard_connections_in_boot() ? find(stmt) : NULL;
	mysql_connection *connection = one ? outboard_mysql_find(stmt->data->conn) : NULL;
	if (connection) {
		const uint32_t replays = connection->replays;
		outboard_mysql_note_statement(connection, one->query.bytes, one->query.len);
		if (connection->replays > replays && stmt->data->param_count > 0) {
			connection->refusal = "a prepared statement has changed its session";
		}
	}
	return connection;
}

static enum_func_status execute_again(MYSQLND_STMT *const stmt)
{
	mysql_connection *noted = note_execution(stmt);
	const enum_func_status status = prepare_again(stmt) ? methods.execute(stmt) : fail(stmt);
	if (noted) {
		outboard_mysql_note_result(noted, status != PASS);
	}
	return status;
}

static enum_func_status send_long_data_again(MYSQLND_STMT *const stmt, unsigned int number, const char *const data,
	zend_ulong len)
{
	return prepare_again(stmt) ? methods.send_long_data(stmt, number, data, len) : fail(stmt);
}

/* The server has no such statement to reset. */
static enum_func_status reset_unless_stale(MYSQLND_STMT *const stmt)
{
	const statement *one = statements ? find(stmt) : NULL;
	return one && one->is_stale ? PASS : methods.reset(stmt);
}

static enum_func_status close_unless_stale(MYSQLND_STMT *const stmt, bool implicit)
{
	statement *one = statements ? find(stmt) : NULL;
	if (one && one->is_stale && stmt->data) {
		/* So that it is only freed. */
		stmt->data->state = MYSQLND_STMT_INITTED;
	}
	if (one) {
		one->stmt = NULL;
	}
	return methods.dtor(stmt, implicit);
}

/* In the zygote, before its snapshot. */
void outboard_mysql_statements_close(void)
{
	for (statement *one = statements; one; one = one->next) {
		one->is_stale = one->stmt != NULL;
	}
}

void outboard_mysql_statements_startup(struct st_mnd_stmt_xetters *setters)
{
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_stmt) *table = setters->get();
	methods = *table;
	table->prepare = prepare_noted;
	table->execute = execute_again;
	table->send_long_data = send_long_data_again;
	table->reset = reset_unless_stale;
	table->dtor = close_unless_stale;
}
