/*
 * Connections of mysqlnd over a snapshot and over requests, by the methods that mysqlnd lets others replace.
 *
 * At the snapshot each connection of the boot is closed. At its first command in a request it is opened again
 * with what it was opened with, its session is set up as the boot has left it, and the command is sent. A worker
 * that is rewound keeps the descriptor of each connection that is in order at the end of a request, and uses
 * it for the next one that would be opened with the same.
 *
 * Called by closing.c. Invariants: a statement is sent on no connection whose session is not as the
 * program has left it; a connection that is encrypted or compressed is not kept, because its state is in
 * memory that is put back.
 */
#include "connections/mysql.h"
#include <dlfcn.h>
#include <unistd.h>

static MYSQLND_CLASS_METHODS_TYPE(mysqlnd_conn_data) conn_methods;
static MYSQLND_CLASS_METHODS_TYPE(mysqlnd_command) commands;

/* A connection that adopts a kept one. */
static struct {
	const MYSQLND_CONN_DATA *conn; /* NULL: none */
	int kept;
	bool is_done;
} adopting;

#define CONNECT_PARAMETERS MYSQLND_CONN_DATA *conn, MYSQLND_CSTRING host, MYSQLND_CSTRING user, \
	MYSQLND_CSTRING password, MYSQLND_CSTRING database, unsigned int port, MYSQLND_CSTRING socket, unsigned int flags
#define CONNECT_ARGUMENTS conn, host, user, password, database, port, socket, flags

/* Opens a connection that was kept. */
static bool adopt(mysql_connection *one, CONNECT_PARAMETERS)
{
	uint64_t session;
	const char *greeting;
	size_t len;
	const int kept = outboard_rs_take_connection(outboard_host.events, one->key.bytes, one->key.len, &session,
		&greeting, &len);
	if (kept < 0) {
		return false;
	}
	OUTBOARD_ASSERT(!adopting.conn);
	adopting.conn = conn;
	adopting.kept = kept;
	adopting.is_done = false;
	const bool is_connected = outboard_adoption_begin(greeting, len)
		&& conn_methods.connect(CONNECT_ARGUMENTS) == PASS;
	if (!adopting.is_done) {
		outboard_adoption_end(-1, kept);
	}
	adopting.conn = NULL;
	return is_connected && adopting.is_done;
}

static enum_func_status connect_noted(CONNECT_PARAMETERS)
{
	mysql_connection *one = outboard_mysql_begin(CONNECT_ARGUMENTS);
	one->was_kept = outboard_keeps_connections() && adopt(one, CONNECT_ARGUMENTS);
	enum_func_status status = one->was_kept ? PASS : conn_methods.connect(CONNECT_ARGUMENTS);
	one->is_open = status == PASS;
	one->charset = conn->charset;
	return status;
}

/* The client is logged in; what it sends from now on must reach the server. */
static enum_func_status handshake_or_adopt(MYSQLND_CONN_DATA *conn, const MYSQLND_CSTRING user,
	const MYSQLND_CSTRING password, const MYSQLND_CSTRING database, const size_t flags)
{
	const enum_func_status status = commands.handshake(conn, user, password, database, flags);
	if (status == PASS && adopting.conn == conn) {
		adopting.is_done = true;
		return outboard_adoption_end(outboard_mysql_descriptor(conn), adopting.kept) ? PASS : FAIL;
	}
	return status;
}

static __typeof__(((MYSQLND_CLASS_METHODS_TYPE(mysqlnd_vio) *) NULL)->network_write) original_write;

static ssize_t write_awake(MYSQLND_VIO *const vio, const zend_uchar *const buffer, const size_t count,
	MYSQLND_STATS *const stats, MYSQLND_ERROR_INFO *const error)
{
	for (mysql_connection *one = outboard_mysql_has_dormant() ? outboard_mysql_first() : NULL; one; one = one->next) {
		if (one->is_dormant && one->conn->vio == vio) {
			outboard_mysql_wake(one);
			break;
		}
	}
	return original_write(vio, buffer, count, stats, error);
}

/* Whether the session can be reset to serve another client. */
static bool is_keepable(const mysql_connection *one)
{
	const MYSQLND_CONN_DATA *conn = one->conn;
	return one->is_open && !one->is_dormant && !one->refusal && !one->is_changed && !one->takes_several
		&& conn->state.state == CONN_READY && conn->vio->data->stream && outboard_mysql_is_plain(conn);
}

static bool keep(mysql_connection *one)
{
	const MYSQLND_CONN_DATA *conn = one->conn;
	char greeting[512];
	outboard_bytes reset = {0};
	const int fd = outboard_keeps_connections() && is_keepable(one) ? outboard_mysql_descriptor(conn) : -1;
	if (fd < 0 || !outboard_is_quiet(fd)) {
		return false;
	}
	outboard_kept_offer offer = {
		.session = conn->thread_id,
		.key = one->key.bytes,
		.key_len = one->key.len,
		.greeting = one->is_of_boot ? conn->authentication_plugin_data.s : greeting,
		.greeting_len = one->is_of_boot ? conn->authentication_plugin_data.l
			: outboard_mysql_greeting(conn, greeting, sizeof(greeting)),
	};
	if (offer.greeting_len == 0) {
		return false;
	}
	offer.replies = outboard_mysql_reset_commands(one, &reset);
	OUTBOARD_ASSERT(offer.replies > 0 && reset.len > 0 && !one->is_dormant);
	offer.reset = reset.bytes;
	offer.reset_len = reset.len;
	const bool is_kept = outboard_rs_keep_connection(outboard_host.events, fd, &offer);
	outboard_bytes_free(&reset);
	return is_kept;
}

/* The client says goodbye; a connection that is kept, or is closed already, does not hear it. */
static enum_func_status close_or_keep(MYSQLND_CONN_DATA *conn)
{
	mysql_connection *one = outboard_mysql_find(conn);
	int end = -1;
	if (one && one->is_dormant) {
		outboard_mysql_is_awake(one);
		end = outboard_divert(outboard_mysql_descriptor(conn));
	} else if (one && keep(one)) {
		end = outboard_divert(outboard_mysql_descriptor(conn));
	}
	if (one) {
		one->is_open = false;
	}
	const enum_func_status status = conn_methods.send_close(conn);
	if (end >= 0) {
		close(end);
	}
	return status;
}

/* What a request has not closed: connections of the boot, and persistent ones. */
void outboard_mysql_keep(void)
{
	for (mysql_connection *one = outboard_mysql_first(); one; one = one->next) {
		keep(one);
	}
}

/* In the zygote, before its snapshot. */
void outboard_mysql_close(void)
{
	static const char goodbye[] = "\1\0\0\0\1";
	uint32_t index = 0;
	outboard_mysql_statements_close();
	for (mysql_connection *one = outboard_mysql_first(); one; one = one->next) {
		php_stream *stream = one->is_open ? one->conn->vio->data->stream : NULL;
		if (!stream) {
			continue;
		}
		one->refusal = outboard_mysql_refusal(one);
		outboard_mysql_is_closed(one);
		/* What is kept for this one has its session, which no other has. */
		index++;
		outboard_bytes_add(&one->key, &index, sizeof(index));
		if (!one->conn->protocol_frame_codec->data->compressed) {
			php_stream_write(stream, goodbye, sizeof(goodbye) - 1);
		}
		outboard_connection_sever(outboard_mysql_descriptor(one->conn));
	}
}

void outboard_mysql_startup(void)
{
	struct st_mysqlnd_plugin_methods_xetters *methods = dlsym(RTLD_DEFAULT, "mysqlnd_plugin_methods_xetters");
	if (!methods || !outboard_mysql_reopening_startup(methods->connection_data.get())) {
		return;
	}
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_conn_data) *conn = methods->connection_data.get();
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_command) *command = methods->command.get();
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_vio) *vio = methods->vio.get();
	conn_methods = *conn;
	commands = *command;
	original_write = vio->network_write;
	conn->connect = connect_noted;
	conn->send_close = close_or_keep;
	command->handshake = handshake_or_adopt;
	outboard_mysql_notes_startup(command);
	vio->network_write = write_awake;
	outboard_mysql_statements_startup(&methods->statement);
}
