/*
 * How a connection of the boot is opened again at its first command in a request: the worker has kept it, or another
 * one is opened beside it, whose descriptor or stream it takes.
 *
 * Called by connections/mysql.c and connections/mysql/statements.c. Invariant: a connection that cannot be opened stays
 * closed, so that the client learns that the server has gone away.
 */
#include "connections/mysql.h"
#include "zend_fibers.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <syslog.h>
#include <unistd.h>

static MYSQLND *(*new_connection)(size_t flags, bool persistent, MYSQLND_CLASS_METHODS_TYPE(mysqlnd_object_factory) *);
/* Without a note. */
static __typeof__(((MYSQLND_CLASS_METHODS_TYPE(mysqlnd_conn_data) *) NULL)->connect) connect_again;

/* What it had at the snapshot, on a new descriptor. */
static bool take_kept(mysql_connection *one)
{
	uint64_t session;
	const char *scramble;
	size_t len;
	const int kept = outboard_rs_take_connection(outboard_host.events, one->key.bytes, one->key.len, &session,
		&scramble, &len);
	if (kept < 0) {
		return false;
	}
	outboard_replace_descriptor(kept, outboard_mysql_descriptor(one->conn));
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
	OUTBOARD_ASSERT(conn != fresh);
	if (outboard_mysql_is_plain(conn) && outboard_mysql_is_plain(fresh)) {
		const int fd = outboard_mysql_descriptor(fresh);
		outboard_replace_descriptor(fcntl(fd, F_DUPFD_CLOEXEC, 3), outboard_mysql_descriptor(conn));
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
	const bool is_open = connect_again(fresh->data, text_of(&one->host), text_of(&one->user),
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
	outboard_mysql_is_awake(one);
	OUTBOARD_ASSERT(!one->is_open || one->is_of_boot);
	if (one->refusal) {
		outboard_connection_is_refused("connection to MySQL", one->place.text, one->refusal);
		return false;
	}
	/* Another coroutine would get the setting as well. */
	zend_fiber_switch_block();
	EG(error_reporting) = 0;
	is_awake = take_kept(one) || open_again(one);
	EG(error_reporting) = reporting;
	zend_fiber_switch_unblock();
	one->is_open = is_awake;
	return is_awake;
}

/* False: mysqlnd is another one than expected. */
bool outboard_mysql_reopening_startup(const MYSQLND_CLASS_METHODS_TYPE(mysqlnd_conn_data) *methods)
{
	connect_again = methods->connect;
	new_connection = (__typeof__(new_connection)) dlsym(RTLD_DEFAULT, "mysqlnd_connection_init");
	return new_connection != NULL;
}
