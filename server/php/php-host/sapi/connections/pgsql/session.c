/*
 * The session of a connection to PostgreSQL: what the boot has left in it, as the server itself lists it, and how a
 * new one gets there.
 *
 * Called by connections/pgsql.c. Invariant: what the server lists and cannot be repeated is a reason not to open
 * the connection again.
 */
#include "connections/pgsql/libpq.h"

/* With more than this in its statements, a session is not set up again. */
#define NOTED_MAX (64 * 1024)

/* Settings, channels and statements, one query for each. */
static const char settings[] = "SELECT pg_catalog.format('SELECT pg_catalog.set_config(%L, %L, false);', name, setting) "
	"FROM pg_catalog.pg_settings WHERE source = 'session' AND context <> 'internal'";
static const char channels[] = "SELECT pg_catalog.format('LISTEN %I;', name) FROM pg_catalog.pg_listening_channels() name";
static const char statements[] = "SELECT name, statement, from_sql FROM pg_catalog.pg_prepared_statements";

/* What is gone with its session. */
static const struct {
	const char *query;
	const char *why;
} lasting[] = {
	{"SELECT 1 FROM pg_catalog.pg_class WHERE relnamespace = pg_catalog.pg_my_temp_schema()",
		"it has a temporary table"},
	{"SELECT 1 FROM pg_catalog.pg_locks WHERE pid = pg_catalog.pg_backend_pid() AND locktype = 'advisory'",
		"it has locked something"},
	{"SELECT 1 FROM pg_catalog.pg_cursors WHERE is_holdable", "it has an open cursor"},
	{"SELECT 1 WHERE current_user <> session_user OR session_user <> (SELECT usename FROM "
		"pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()) JOIN pg_catalog.pg_user USING (usesysid))",
		"it has changed its role"},
};

static PGresult *ask(PGconn *conn, const char *query)
{
	PGresult *result = outboard_libpq.exec(conn, query);
	if (outboard_libpq.result_status(result) == PGRES_TUPLES_OK) {
		return result;
	}
	outboard_libpq.clear(result);
	return NULL;
}

static void add_text(outboard_bytes *to, const char *text)
{
	outboard_bytes_add(to, text, strlen(text));
}

/* False: the server does not say. */
static bool collect(PGconn *conn, const char *query, outboard_bytes *to)
{
	PGresult *result = ask(conn, query);
	for (int row = 0; result && row < outboard_libpq.rows(result); row++) {
		add_text(to, outboard_libpq.value(result, row, 0));
	}
	outboard_libpq.clear(result);
	return result != NULL;
}

static bool collect_statements(PGconn *conn, pgsql_session *session)
{
	PGresult *result = ask(conn, statements);
	for (int row = 0; result && row < outboard_libpq.rows(result); row++) {
		const char *text = outboard_libpq.value(result, row, 1);
		if (*outboard_libpq.value(result, row, 2) == 't') {
			add_text(&session->queries, text);
			add_text(&session->queries, ";");
		} else {
			const char *name = outboard_libpq.value(result, row, 0);
			outboard_bytes_add(&session->prepared, name, strlen(name) + 1);
			outboard_bytes_add(&session->prepared, text, strlen(text) + 1);
		}
	}
	outboard_libpq.clear(result);
	return result != NULL;
}

/* In the zygote, before the connection is closed. */
void outboard_pgsql_examine(PGconn *conn, pgsql_session *session)
{
	if (outboard_libpq.transaction(conn) != PQTRANS_IDLE) {
		session->refusal = "it has an open transaction, or a result was not read to its end";
		return;
	}
	for (size_t i = 0; i < sizeof(lasting) / sizeof(*lasting) && !session->refusal; i++) {
		PGresult *result = ask(conn, lasting[i].query);
		if (!result || outboard_libpq.rows(result) > 0) {
			session->refusal = result ? lasting[i].why : "its server does not describe its session";
		}
		outboard_libpq.clear(result);
	}
	if (!session->refusal && (!collect(conn, settings, &session->queries)
		|| !collect(conn, channels, &session->queries) || !collect_statements(conn, session))) {
		session->refusal = "its server does not describe its session";
	}
	outboard_bytes_add(&session->queries, "", 1);
}

/*
 * In the boot: settings of the application's own, such as `SET app.tenant = 7`, are not listed by the server.
 * Called before a statement, whose text is repeated if it has succeeded.
 */
bool outboard_pgsql_sets_own(const char *text)
{
	while (isspace((unsigned char) *text)) {
		text++;
	}
	if (strncasecmp(text, "set", 3) != 0 || !isspace((unsigned char) text[3])) {
		return false;
	}
	const size_t name = strcspn(text, "=");
	const char *semicolon = strchr(text, ';');
	return memchr(text, '.', name) && (!semicolon || semicolon[1 + strspn(semicolon + 1, " \t\r\n")] == 0);
}

void outboard_pgsql_note(pgsql_session *session, const char *text)
{
	if (session->queries.len + strlen(text) > NOTED_MAX) {
		session->refusal = "its session has too many settings";
		return;
	}
	add_text(&session->queries, text);
	add_text(&session->queries, ";");
}

static bool is_done(PGresult *result)
{
	const int status = outboard_libpq.result_status(result);
	outboard_libpq.clear(result);
	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* Repeats in a new connection what the boot has left in the session. */
bool outboard_pgsql_replay(const pgsql_session *session, PGconn *conn)
{
	OUTBOARD_ASSERT(!session->refusal);
	OUTBOARD_ASSERT(session->queries.len == 0 || session->queries.bytes[session->queries.len - 1] == 0);
	if (session->queries.len > 1 && !is_done(outboard_libpq.exec(conn, session->queries.bytes))) {
		return false;
	}
	const char *end = session->prepared.bytes + session->prepared.len;
	for (const char *name = session->prepared.bytes; name < end;) {
		const char *text = name + strlen(name) + 1;
		if (!is_done(outboard_libpq.prepare(conn, name, text, 0, NULL))) {
			return false;
		}
		name = text + strlen(text) + 1;
		OUTBOARD_ASSERT(name <= end);
	}
	return true;
}
