/*
 * Connections of mysqlnd over a snapshot and over requests, by the methods that mysqlnd lets others replace.
 *
 * At the snapshot each connection of the boot is closed. At its first command in a request it is opened again
 * with what it was opened with, its session is set up as the boot has left it, and the command is sent. A worker
 * that is rewound keeps the descriptor of each connection that is in order at the end of a request, and uses
 * it for the next one that would be opened with the same.
 *
 * Called by connections.c. Invariants: a statement is sent on no connection whose session is not as the
 * program has left it; a connection that is encrypted or compressed is not kept, because its state is in
 * memory that is put back.
 */
#include "connections/mysql.h"
#include <dlfcn.h>
#include <unistd.h>

static MYSQLND_CLASS_METHODS_TYPE(mysqlnd_conn_data) conn_methods;
static MYSQLND_CLASS_METHODS_TYPE(mysqlnd_command) commands;

static mysql_connection *connections;
/* How many are dormant. */
uint32_t outboard_mysql_dormant;

/* A connection that adopts a kept one. */
static struct {
	const MYSQLND_CONN_DATA *conn; /* NULL: none */
	int kept;
	bool is_done;
} adopting;

mysql_connection *outboard_mysql_find(const MYSQLND_CONN_DATA *conn)
{
	mysql_connection *one = connections;
	while (one && one->conn != conn) {
		one = one->next;
	}
	return one;
}

int outboard_mysql_descriptor(const MYSQLND_CONN_DATA *conn)
{
	php_stream *stream = conn->vio->data->stream;
	int fd = -1;
	if (!stream || php_stream_cast(stream, PHP_STREAM_AS_FD_FOR_SELECT | PHP_STREAM_CAST_INTERNAL,
			(void *) &fd, false) != SUCCESS) {
		return -1;
	}
	return fd;
}

static void set(outboard_bytes *to, MYSQLND_CSTRING text)
{
	to->len = 0;
	outboard_bytes_add(to, text.s, text.s ? text.l : 0);
	/* So that it is a string of C, too. */
	outboard_bytes_add(to, "", 1);
	to->len--;
}

static void add_key(mysql_connection *one, const char *text)
{
	outboard_bytes_add_part(&one->key, text ? text : "", text ? strlen(text) : 0);
}

static void make_key(mysql_connection *one)
{
	const MYSQLND_SESSION_OPTIONS *options = one->conn->options;
	const outboard_bytes *const parts[] = {&one->host, &one->user, &one->password, &one->database, &one->socket};
	const unsigned int numbers[] = {one->port, one->flags, options->flags};
	one->key.len = 0;
	outboard_bytes_add_part(&one->key, "mysql", 5);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		outboard_bytes_add_part(&one->key, parts[i]->bytes, parts[i]->len);
	}
	outboard_bytes_add_part(&one->key, (const char *) numbers, sizeof(numbers));
	add_key(one, options->charset_name);
}

/* The record of a connection that is about to be opened; a handle that is used again keeps its own. */
static mysql_connection *begin(MYSQLND_CONN_DATA *conn, MYSQLND_CSTRING host, MYSQLND_CSTRING user,
	MYSQLND_CSTRING password, MYSQLND_CSTRING database, unsigned int port, MYSQLND_CSTRING socket, unsigned int flags)
{
	mysql_connection *one = outboard_mysql_find(conn);
	if (!one) {
		one = pecalloc(1, sizeof(*one), 1);
		one->conn = conn;
		one->next = connections;
		connections = one;
	}
	set(&one->host, host);
	set(&one->user, user);
	set(&one->password, password);
	set(&one->database, database);
	set(&one->socket, socket);
	one->port = port;
	one->flags = flags;
	one->replayed.len = 0;
	one->replays = 0;
	one->last_replay = SIZE_MAX;
	one->refusal = NULL;
	one->is_of_boot = outboard_connections_in_boot();
	one->has_database = database.l > 0;
	one->is_open = one->is_changed = one->takes_several = one->was_kept = false;
	if (one->is_of_boot) {
		outboard_place_here(&one->place);
	}
	make_key(one);
	return one;
}

/* Whether only the descriptor has a state that a rewind does not put back. */
bool outboard_mysql_is_plain(const MYSQLND_CONN_DATA *conn)
{
	return !conn->vio->data->ssl && !conn->protocol_frame_codec->data->compressed;
}

#define CONNECT_PARAMETERS MYSQLND_CONN_DATA *conn, MYSQLND_CSTRING host, MYSQLND_CSTRING user, \
	MYSQLND_CSTRING password, MYSQLND_CSTRING database, unsigned int port, MYSQLND_CSTRING socket, unsigned int flags
#define CONNECT_ARGUMENTS conn, host, user, password, database, port, socket, flags

/* Opens a connection that was kept. */
static bool adopt(mysql_connection *one, CONNECT_PARAMETERS)
{
	uint64_t session;
	const char *greeting;
	size_t len;
	const int kept = outboard_rs_take_connection(outboard_events, one->key.bytes, one->key.len, &session,
		&greeting, &len);
	if (kept < 0) {
		return false;
	}
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
	mysql_connection *one = begin(CONNECT_ARGUMENTS);
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
	for (mysql_connection *one = outboard_mysql_dormant > 0 ? connections : NULL; one; one = one->next) {
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
	offer.reset = reset.bytes;
	offer.reset_len = reset.len;
	const bool is_kept = outboard_rs_keep_connection(outboard_events, fd, &offer);
	outboard_bytes_free(&reset);
	return is_kept;
}

/* The client says goodbye; a connection that is kept, or is closed already, does not hear it. */
static enum_func_status close_or_keep(MYSQLND_CONN_DATA *conn)
{
	mysql_connection *one = outboard_mysql_find(conn);
	int end = -1;
	if (one && one->is_dormant) {
		one->is_dormant = false;
		outboard_mysql_dormant--;
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
	for (mysql_connection *one = connections; one; one = one->next) {
		keep(one);
	}
}

/* In the zygote, before its snapshot. */
void outboard_mysql_close(void)
{
	static const char goodbye[] = "\1\0\0\0\1";
	uint32_t index = 0;
	outboard_mysql_statements_close();
	for (mysql_connection *one = connections; one; one = one->next) {
		php_stream *stream = one->is_open ? one->conn->vio->data->stream : NULL;
		if (!stream) {
			continue;
		}
		one->refusal = outboard_mysql_refusal(one);
		one->is_dormant = true;
		outboard_mysql_dormant++;
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
