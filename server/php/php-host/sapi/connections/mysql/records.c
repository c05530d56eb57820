/*
 * What is known of each connection of mysqlnd: a list of records. Called by mysql.c and the files beside this one.
 *
 * Invariant: as many records are dormant as the counter says; a dormant one is woken before it is used.
 */
#include "connections/mysql.h"

static mysql_connection *connections;
static uint32_t dormant_count;

mysql_connection *outboard_mysql_first(void)
{
	return connections;
}

bool outboard_mysql_has_dormant(void)
{
	return dormant_count > 0;
}

/* At the snapshot. */
void outboard_mysql_is_closed(mysql_connection *one)
{
	OUTBOARD_ASSERT(!one->is_dormant && one->is_of_boot);
	one->is_dormant = true;
	dormant_count++;
}

/* It is not dormant any more. */
void outboard_mysql_is_awake(mysql_connection *one)
{
	OUTBOARD_ASSERT(one->is_dormant && dormant_count > 0);
	one->is_dormant = false;
	dormant_count--;
}

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
mysql_connection *outboard_mysql_begin(MYSQLND_CONN_DATA *conn, MYSQLND_CSTRING host, MYSQLND_CSTRING user,
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
