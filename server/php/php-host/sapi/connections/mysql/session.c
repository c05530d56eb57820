/*
 * The session of a MySQL connection: what the boot has set in it, how a new one or one that was kept gets
 * there, and the greeting of a server whose connection is adopted.
 *
 * Called by connections/mysql.c. Invariant: what is not known to change nothing, or to be repeatable, is a reason not
 * to open the connection again.
 */
#include "connections/mysql.h"

/* With more than this, a session is not set up again. */
#define REPLAYED_MAX (64 * 1024)

void outboard_mysql_command(outboard_bytes *to, unsigned char command, const char *text, size_t len)
{
	const size_t payload = len + 1;
	OUTBOARD_ASSERT(payload <= 0xffffff); /* one packet */
	const unsigned char head[5] = {payload & 0xff, (payload >> 8) & 0xff, (payload >> 16) & 0xff, 0, command};
	outboard_bytes_add(to, head, sizeof(head));
	outboard_bytes_add(to, text, len);
}

/* Skips spaces, comments, and the brackets around a SELECT. */
static const char *first_word(const char *text, const char *end)
{
	while (text < end) {
		if (memchr(" \t\r\n\f\v(", *text, 7)) {
			text++;
		} else if (*text == '#' || (end - text > 2 && memcmp(text, "--", 2) == 0)) {
			const char *line = memchr(text, '\n', (size_t) (end - text));
			text = line ? line + 1 : end;
		} else if (end - text > 2 && memcmp(text, "/*", 2) == 0 && text[2] != '!') {
			const char *after = zend_memnstr(text, "*/", 2, end);
			text = after ? after + 2 : end;
		} else {
			break;
		}
	}
	return text;
}

/* Where a quoted string ends, from the place of its first quote. */
static const char *end_of_string(const char *text, const char *end, bool has_escapes)
{
	const char quote = *text++;
	while (text < end && *text != quote) {
		text += has_escapes && *text == '\\' && quote != '`' ? 2 : 1;
	}
	return text < end ? text + 1 : end;
}

/* A copy without what is in quotes or comments, so that a word in a value is not taken for one of the statement. */
static outboard_bytes without_values(const char *text, size_t len, bool has_escapes)
{
	const char *end = text + len;
	outboard_bytes bare = {0};
	while (text < end) {
		const char *after = memchr("'\"`", *text, 3) ? end_of_string(text, end, has_escapes) : first_word(text, end);
		outboard_bytes_add(&bare, after > text ? " " : text, 1);
		text = after > text ? after : text + 1;
	}
	return bare;
}

static bool begins_with(const char *text, const char *end, const char *word)
{
	const size_t len = strlen(word);
	return (size_t) (end - text) >= len && strncasecmp(text, word, len) == 0;
}

static bool begins_with_any(const char *text, const char *end, const char *const words[])
{
	for (; *words; words++) {
		if (begins_with(text, end, *words)) {
			return true;
		}
	}
	return false;
}

static bool contains(const char *text, const char *end, const char *word)
{
	const size_t len = strlen(word);
	for (; (size_t) (end - text) >= len; text++) {
		if (strncasecmp(text, word, len) == 0) {
			return true;
		}
	}
	return false;
}

/* Of all sessions, or of the user: it has had its effect. */
static bool is_beyond_session(const char *text, const char *end)
{
	static const char *const words[] = {"set global", "set @@global", "set persist", "set password",
		"set default role", "set statement", NULL};
	return begins_with_any(text, end, words);
}

/* More than one statement in a text. */
static bool are_several(const char *text, const char *end)
{
	const char *semicolon = text < end ? memchr(text, ';', (size_t) (end - text)) : NULL;
	return semicolon && first_word(semicolon + 1, end) < end;
}

/* Why a statement leaves something behind that another connection would not have; NULL: it does not. */
static const char *lasting(const char *text, const char *end)
{
	static const char *const locks[] = {"lock", "flush", "handler", "backup", NULL};
	static const char *const unknown[] = {"call", "execute", "prepare", "xa", "/*!", "install", NULL};
	static const char *const known[] = {"select", "show", "describe", "desc", "explain", "insert", "update",
		"delete", "replace", "create", "alter", "drop", "truncate", "begin", "start", "commit", "rollback",
		"savepoint", "release", "set", "use", "analyze", "check", "optimize", "unlock", "with", "do", "kill",
		"grant", "revoke", "load", "values", "table", "rename", NULL};
	if (begins_with_any(text, end, locks) || contains(text, end, "get_lock")) {
		return "it has locked something";
	}
	if (contains(text, end, " temporary ") && (begins_with(text, end, "create") || are_several(text, end))) {
		return "it has a temporary table";
	}
	if (contains(text, end, ":=") || contains(text, end, "into @") || contains(text, end, "into@")) {
		return "a statement has set a variable";
	}
	if (begins_with_any(text, end, unknown) || !begins_with_any(text, end, known)) {
		return "it is not known what a statement has left in the session";
	}
	return NULL;
}

static void note(mysql_connection *one, unsigned char command, const char *text, size_t len)
{
	if (one->replayed.len + len > REPLAYED_MAX) {
		one->refusal = "its session has too many settings";
		return;
	}
	one->last_replay = one->replayed.len;
	one->replays++;
	outboard_mysql_command(&one->replayed, command, text, len);
}

/* `bare` is the statement without values. */
static void classify(mysql_connection *one, const char *bare, const char *end, const char *text, size_t len)
{
	const char *word = first_word(bare, end);
	const char *why = word < end ? lasting(word, end) : NULL;
	if (why) {
		one->refusal = why;
	} else if (begins_with(word, end, "set") || begins_with(word, end, "use")) {
		if (are_several(word, end)) {
			one->refusal = "several statements were sent at once";
		} else if (!is_beyond_session(word, end)) {
			note(one, MYSQL_COM_QUERY, text, len);
			one->has_database |= begins_with(word, end, "use");
		}
	} else if (are_several(word, end)
		&& (contains(word, end, "set") || contains(word, end, "use") || contains(word, end, "lock"))) {
		one->refusal = "several statements were sent at once";
	}
}

/* In the boot, before a statement is sent. */
void outboard_mysql_note_statement(mysql_connection *one, const char *text, size_t len)
{
	const bool has_escapes = !(one->conn->upsert_status->server_status & SERVER_STATUS_NO_BACKSLASH_ESCAPES);
	outboard_bytes bare = without_values(text, len, has_escapes);
	one->last_replay = SIZE_MAX;
	classify(one, bare.bytes, bare.bytes + bare.len, text, len);
	outboard_bytes_free(&bare);
}

void outboard_mysql_note_database(mysql_connection *one, const char *name, size_t len)
{
	one->has_database = true;
	one->last_replay = SIZE_MAX;
	note(one, MYSQL_COM_INIT_DB, name, len);
}

/* A command that has failed has changed nothing. */
void outboard_mysql_note_result(mysql_connection *one, bool has_failed)
{
	if (one->last_replay != SIZE_MAX && has_failed) {
		one->replayed.len = one->last_replay;
		one->replays--;
	}
	one->last_replay = SIZE_MAX;
}

/* At the snapshot. */
const char *outboard_mysql_refusal(const mysql_connection *one)
{
	const MYSQLND_CONN_DATA *conn = one->conn;
	if (one->refusal) {
		return one->refusal;
	}
	if (conn->state.state != CONN_READY) {
		return "a result was not read to its end";
	}
	if (conn->upsert_status->server_status & SERVER_STATUS_IN_TRANS) {
		return "it has an open transaction";
	}
	if (one->takes_several) {
		return "it accepts several statements at once";
	}
	return NULL;
}

static uint32_t add_query(outboard_bytes *commands, const char *query)
{
	outboard_mysql_command(commands, MYSQL_COM_QUERY, query, strlen(query));
	return 1;
}

/*
 * A reset leaves the recorded queries as they are: they are dropped at the end of a statement that began while
 * queries were recorded, if none may be kept.
 */
static uint32_t forget_profiles(outboard_bytes *commands)
{
	return add_query(commands, "SET profiling = 1, profiling_history_size = 0") + add_query(commands, "SET profiling = 0");
}

static bool is_mariadb(const MYSQLND_CONN_DATA *conn)
{
	return strstr(conn->server_version, "MariaDB") != NULL;
}

/* A reset leaves roles as they are, by whatever they were taken. */
static uint32_t reset_role(const MYSQLND_CONN_DATA *conn, outboard_bytes *commands)
{
	const bool has_default = !is_mariadb(conn) && atoi(conn->server_version) >= 8;
	return has_default || is_mariadb(conn) ? add_query(commands, has_default ? "SET ROLE DEFAULT" : "SET ROLE NONE") : 0;
}

/*
 * Asks for what only a new connection has, or what no command takes back; the answer is empty, or the connection is
 * closed: commands that the server runs for each new connection, a default role, a database where there was none.
 */
static uint32_t prove(const mysql_connection *one, outboard_bytes *commands)
{
	const char *const values[] = {
		one->was_kept ? "''" : "@@init_connect",
		one->has_database ? "''" : "DATABASE()",
		one->was_kept || !is_mariadb(one->conn) ? "''"
			: "(SELECT MAX(ROLE_NAME) FROM information_schema.APPLICABLE_ROLES WHERE IS_DEFAULT = 'YES')",
	};
	char query[256];
	snprintf(query, sizeof(query), "SELECT CONCAT_WS('', %s, %s, %s)", values[0], values[1], values[2]);
	return add_query(commands, query);
}

/*
 * What brings a used session back to where it was after the connection was opened, or for one of the boot, at
 * the snapshot. A reset leaves the database as it is, and sets the server's character set instead of the
 * client's. Returns how many commands these are.
 */
uint32_t outboard_mysql_reset_commands(const mysql_connection *one, outboard_bytes *commands)
{
	const MYSQLND_CHARSET *charset = one->charset;
	char names[128];
	uint32_t count = forget_profiles(commands) + 1;
	outboard_mysql_command(commands, MYSQL_COM_RESET_CONNECTION, "", 0);
	snprintf(names, sizeof(names), "SET NAMES %s COLLATE %s", charset->name, charset->collation);
	count += reset_role(one->conn, commands) + add_query(commands, names);
	if (one->database.len > 0) {
		outboard_mysql_command(commands, MYSQL_COM_INIT_DB, one->database.bytes, one->database.len);
		count++;
	}
	if (one->is_of_boot) {
		outboard_bytes_add(commands, one->replayed.bytes, one->replayed.len);
		count += one->replays;
	}
	return count + prove(one, commands);
}

/* Repeats in a new connection what the boot has set in the session. */
bool outboard_mysql_replay(const mysql_connection *one, MYSQLND_CONN_DATA *target)
{
	for (size_t at = 0; at < one->replayed.len;) {
		const unsigned char *command = (const unsigned char *) one->replayed.bytes + at;
		const size_t payload = command[0] | (size_t) command[1] << 8 | (size_t) command[2] << 16;
		const char *text = (const char *) command + 5;
		const enum_func_status status = command[4] == MYSQL_COM_INIT_DB
			? target->m->select_db(target, text, payload - 1)
			: target->m->query(target, text, payload - 1);
		if (status != PASS || target->error_info->error_no) {
			return false;
		}
		at += payload + 4;
	}
	return true;
}

/* Of a scramble, without the zero at its end. */
#define SCRAMBLE 20

/*
 * The greeting of a server, and its consent to any answer. It names the oldest way of authentication, to which
 * the client answers at once. Returns its length, or 0: it is too long.
 */
size_t outboard_mysql_greeting(const MYSQLND_CONN_DATA *conn, char *target, size_t size)
{
	static const char plugin[] = "mysql_native_password";
	static const unsigned char consent[11] = {7, 0, 0, 2, 0, 0, 0, SERVER_STATUS_AUTOCOMMIT, 0, 0, 0};
	const char *scramble = conn->authentication_plugin_data.s;
	const size_t version = strlen(conn->server_version) + 1;
	const uint32_t session = (uint32_t) conn->thread_id;
	const uint32_t can = (uint32_t) conn->server_capabilities;
	const unsigned char middle[] = {0, can & 0xff, (can >> 8) & 0xff, (unsigned char) conn->greet_charset->nr,
		SERVER_STATUS_AUTOCOMMIT, 0, (can >> 16) & 0xff, (can >> 24) & 0xff, SCRAMBLE + 1,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	const size_t payload = 1 + version + 4 + 8 + sizeof(middle) + SCRAMBLE - 8 + 1 + sizeof(plugin);
	if (!scramble || conn->authentication_plugin_data.l < SCRAMBLE || payload + 4 + sizeof(consent) > size
		|| !(can & CLIENT_PLUGIN_AUTH) || conn->thread_id > UINT32_MAX || conn->greet_charset->nr > UINT8_MAX) {
		return 0;
	}
	char *at = target;
	const unsigned char head[5] = {payload & 0xff, (payload >> 8) & 0xff, 0, 0, (unsigned char) conn->protocol_version};
	at = mempcpy(at, head, sizeof(head));
	at = mempcpy(at, conn->server_version, version);
	at = mempcpy(at, &session, sizeof(session));
	at = mempcpy(at, scramble, 8);
	at = mempcpy(at, middle, sizeof(middle));
	at = mempcpy(at, scramble + 8, SCRAMBLE - 8);
	*at++ = 0;
	at = mempcpy(at, plugin, sizeof(plugin));
	at = mempcpy(at, consent, sizeof(consent));
	return (size_t) (at - target);
}
