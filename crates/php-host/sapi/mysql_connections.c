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
#include "mysql_connections.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

static MYSQLND_CLASS_METHODS_TYPE(mysqlnd_conn_data) conn_methods;
static MYSQLND_CLASS_METHODS_TYPE(mysqlnd_command) commands;
static MYSQLND_CLASS_METHODS_TYPE(mysqlnd_vio) vio_methods;
static MYSQLND *(*new_connection)(size_t flags, bool persistent, MYSQLND_CLASS_METHODS_TYPE(mysqlnd_object_factory) *);

static mysql_connection *connections;
/* How many are dormant. */
static uint32_t dormant;

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

static int descriptor_of(const MYSQLND_CONN_DATA *conn)
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
static bool is_plain(const MYSQLND_CONN_DATA *conn)
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
		return outboard_adoption_end(descriptor_of(conn), adopting.kept) ? PASS : FAIL;
	}
	return status;
}

static enum_func_status query_noted(MYSQLND_CONN_DATA *const conn, MYSQLND_CSTRING query)
{
	mysql_connection *one = outboard_mysql_find(conn);
	if (one && outboard_connections_in_boot()) {
		outboard_mysql_note_statement(one, query.s, query.l);
	} else if (one) {
		outboard_mysql_note_request(one, query.s, query.l);
	}
	return commands.query(conn, query);
}

static enum_func_status result_noted(MYSQLND_CONN_DATA *const conn)
{
	const enum_func_status status = commands.reap_result(conn);
	mysql_connection *one = outboard_connections_in_boot() ? outboard_mysql_find(conn) : NULL;
	if (one) {
		outboard_mysql_note_result(one, status != PASS || conn->error_info->error_no);
	}
	return status;
}

static enum_func_status database_noted(MYSQLND_CONN_DATA *const conn, const MYSQLND_CSTRING name)
{
	mysql_connection *one = outboard_mysql_find(conn);
	const bool is_booting = one && outboard_connections_in_boot();
	if (is_booting) {
		outboard_mysql_note_database(one, name.s, name.l);
	} else if (one) {
		one->is_changed |= !one->has_database;
	}
	const enum_func_status status = commands.init_db(conn, name);
	if (is_booting) {
		outboard_mysql_note_result(one, status != PASS);
	}
	return status;
}

static enum_func_status user_noted(MYSQLND_CONN_DATA *const conn, const MYSQLND_CSTRING payload, const bool silent)
{
	mysql_connection *one = outboard_mysql_find(conn);
	if (one) {
		one->is_changed = true;
		one->refusal = "its user was changed";
	}
	return commands.change_user(conn, payload, silent);
}

static enum_func_status option_noted(MYSQLND_CONN_DATA *const conn, const enum_mysqlnd_server_option option)
{
	mysql_connection *one = outboard_mysql_find(conn);
	if (one) {
		one->takes_several = option == MYSQL_OPTION_MULTI_STATEMENTS_ON;
	}
	return commands.set_option(conn, option);
}

/* What it had at the snapshot, on a new descriptor. */
static bool take_kept(mysql_connection *one)
{
	uint64_t session;
	const char *scramble;
	size_t len;
	const int kept = outboard_rs_take_connection(outboard_events, one->key.bytes, one->key.len, &session,
		&scramble, &len);
	if (kept < 0) {
		return false;
	}
	outboard_replace_descriptor(kept, descriptor_of(one->conn));
	one->conn->thread_id = session;
	if (len == one->conn->authentication_plugin_data.l) {
		memcpy(one->conn->authentication_plugin_data.s, scramble, len);
	}
	one->was_kept = true;
	return true;
}

static MYSQLND_CSTRING text_of(const outboard_bytes *bytes)
{
	return (MYSQLND_CSTRING) {bytes->len > 0 ? bytes->bytes : NULL, bytes->len};
}

/*
 * Has the connection of the boot use what another one, `fresh`, has opened. The other is forgotten, with memory
 * that goes at the request's end.
 */
static void move(mysql_connection *one, MYSQLND_CONN_DATA *fresh)
{
	MYSQLND_CONN_DATA *conn = one->conn;
	if (is_plain(conn) && is_plain(fresh)) {
		const int fd = descriptor_of(fresh);
		outboard_replace_descriptor(fcntl(fd, F_DUPFD_CLOEXEC, 3), descriptor_of(conn));
		close(fd);
	} else {
		conn->vio->data->stream = fresh->vio->data->stream;
		conn->vio->data->ssl = fresh->vio->data->ssl;
		conn->protocol_frame_codec->data->ssl = fresh->protocol_frame_codec->data->ssl;
	}
	fresh->vio->data->stream = NULL;
	conn->thread_id = fresh->thread_id;
	conn->server_capabilities = fresh->server_capabilities;
	conn->authentication_plugin_data = fresh->authentication_plugin_data;
}

static bool open_again(mysql_connection *one)
{
	MYSQLND *fresh = new_connection(one->conn->client_api_capabilities, one->conn->persistent, NULL);
	if (!fresh) {
		return false;
	}
	/* The rest is shared, since it is not freed. */
	*fresh->data->options = *one->conn->options;
	fresh->data->vio->data->options = one->conn->vio->data->options;
	/* MYSQLI_INIT_COMMAND is among what is repeated. */
	fresh->data->options->num_commands = 0;
	const bool is_open = conn_methods.connect(fresh->data, text_of(&one->host), text_of(&one->user),
			text_of(&one->password), text_of(&one->database), one->port, text_of(&one->socket), one->flags) == PASS
		&& outboard_mysql_replay(one, fresh->data);
	if (!is_open) {
		char *why;
		spprintf(&why, 0, "the connection to MySQL of the boot (%s) cannot be opened again: %s", one->place.text,
			fresh->data->error_info->error);
		php_log_err_with_severity(why, LOG_WARNING);
		efree(why);
		return false;
	}
	move(one, fresh->data);
	return true;
}

/* Opens a connection of the boot; if that is impossible, the client learns that the server has gone away. */
bool outboard_mysql_wake(mysql_connection *one)
{
	const int reporting = EG(error_reporting);
	bool is_awake = false;
	if (!one->is_dormant) {
		return true;
	}
	one->is_dormant = false;
	dormant--;
	if (one->refusal) {
		outboard_connection_is_refused("connection to MySQL", one->place.text, one->refusal);
		return false;
	}
	EG(error_reporting) = 0;
	is_awake = take_kept(one) || open_again(one);
	EG(error_reporting) = reporting;
	one->is_open = is_awake;
	return is_awake;
}

static __typeof__(((MYSQLND_CLASS_METHODS_TYPE(mysqlnd_vio) *) NULL)->network_write) original_write;

static ssize_t write_awake(MYSQLND_VIO *const vio, const zend_uchar *const buffer, const size_t count,
	MYSQLND_STATS *const stats, MYSQLND_ERROR_INFO *const error)
{
	for (mysql_connection *one = dormant > 0 ? connections : NULL; one; one = one->next) {
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
		&& conn->state.state == CONN_READY && conn->vio->data->stream && is_plain(conn);
}

static bool keep(mysql_connection *one)
{
	const MYSQLND_CONN_DATA *conn = one->conn;
	char greeting[512];
	outboard_bytes reset = {0};
	const int fd = outboard_keeps_connections() && is_keepable(one) ? descriptor_of(conn) : -1;
	if (fd < 0 || !outboard_is_quiet(fd)) {
		return false;
	}
	outboard_kept_offer offer = {
		.protocol = one->was_kept ? OUTBOARD_MYSQL : OUTBOARD_MYSQL_NEW,
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
		dormant--;
		end = outboard_divert(descriptor_of(conn));
	} else if (one && keep(one)) {
		end = outboard_divert(descriptor_of(conn));
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
		dormant++;
		/* What is kept for this one has its session, which no other has. */
		index++;
		outboard_bytes_add(&one->key, &index, sizeof(index));
		if (!one->conn->protocol_frame_codec->data->compressed) {
			php_stream_write(stream, goodbye, sizeof(goodbye) - 1);
		}
		outboard_connection_sever(descriptor_of(one->conn));
	}
}

void outboard_mysql_startup(void)
{
	struct st_mysqlnd_plugin_methods_xetters *methods = dlsym(RTLD_DEFAULT, "mysqlnd_plugin_methods_xetters");
	new_connection = (__typeof__(new_connection)) dlsym(RTLD_DEFAULT, "mysqlnd_connection_init");
	if (!methods || !new_connection) {
		return;
	}
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_conn_data) *conn = methods->connection_data.get();
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_command) *command = methods->command.get();
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_vio) *vio = methods->vio.get();
	conn_methods = *conn;
	commands = *command;
	vio_methods = *vio;
	original_write = vio_methods.network_write;
	conn->connect = connect_noted;
	conn->send_close = close_or_keep;
	command->handshake = handshake_or_adopt;
	command->query = query_noted;
	command->reap_result = result_noted;
	command->init_db = database_noted;
	command->change_user = user_noted;
	command->set_option = option_noted;
	vio->network_write = write_awake;
	outboard_mysql_statements_startup(&methods->statement);
}
