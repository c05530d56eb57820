/*
 * Replacements for the functions of libpq that send something: a connection of the boot is opened again before.
 * PHP's extensions find them in this program (build.rs). Each calls connections/pgsql.c and then libpq's own; the one
 * that reads results is bounded.
 */
#include "connections/pgsql/libpq.h"
#include "interpose.h"

int PQconsumeInput(PGconn *conn)
{
	REAL(PQconsumeInput);
	outboard_pgsql_use(conn);
	return real(conn);
}

PGresult *PQexec(PGconn *conn, const char *query)
{
	REAL(PQexec);
	outboard_pgsql_use(conn);
	const bool is_noted = outboard_connections_in_boot() && outboard_pgsql_sets_own(query);
	PGresult *result = real(conn, query);
	if (is_noted && outboard_libpq.clear && outboard_libpq.result_status(result) == PGRES_COMMAND_OK) {
		outboard_pgsql_note_query(conn, query);
	}
	return result;
}

PGresult *PQprepare(PGconn *conn, const char *name, const char *query, int count, const Oid *types)
{
	REAL(PQprepare);
	outboard_pgsql_use(conn);
	return real(conn, name, query, count, types);
}

PGresult *PQexecParams(PGconn *conn, const char *query, int count, const Oid *types, const char *const *values,
	const int *lengths, const int *formats, int format)
{
	REAL(PQexecParams);
	outboard_pgsql_use(conn);
	return real(conn, query, count, types, values, lengths, formats, format);
}

PGresult *PQexecPrepared(PGconn *conn, const char *name, int count, const char *const *values, const int *lengths,
	const int *formats, int format)
{
	REAL(PQexecPrepared);
	outboard_pgsql_use(conn);
	return real(conn, name, count, values, lengths, formats, format);
}

int PQsendQuery(PGconn *conn, const char *query)
{
	REAL(PQsendQuery);
	outboard_pgsql_use(conn);
	return real(conn, query);
}

int PQsendQueryParams(PGconn *conn, const char *query, int count, const Oid *types, const char *const *values,
	const int *lengths, const int *formats, int format)
{
	REAL(PQsendQueryParams);
	outboard_pgsql_use(conn);
	return real(conn, query, count, types, values, lengths, formats, format);
}

int PQsendPrepare(PGconn *conn, const char *name, const char *query, int count, const Oid *types)
{
	REAL(PQsendPrepare);
	outboard_pgsql_use(conn);
	return real(conn, name, query, count, types);
}

int PQsendQueryPrepared(PGconn *conn, const char *name, int count, const char *const *values, const int *lengths,
	const int *formats, int format)
{
	REAL(PQsendQueryPrepared);
	outboard_pgsql_use(conn);
	return real(conn, name, count, values, lengths, formats, format);
}

/* So often the same answer is no progress. */
#define COPIES_MAX 100

/*
 * While COPY waits for data, each call says so again. PHP, which reads all results before it closes a connection, would
 * never come to an end.
 */
PGresult *PQgetResult(PGconn *conn)
{
	static const PGconn *copying;
	static unsigned int copies;
	REAL(PQgetResult);
	PGresult *result = real(conn);
	if (!result || (!outboard_libpq.clear && !outboard_libpq_find())) {
		return result;
	}
	const int status = outboard_libpq.result_status(result);
	const bool is_copy = status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
	copies = is_copy && copying == conn ? copies + 1 : 0;
	copying = is_copy ? conn : NULL;
	if (copies < COPIES_MAX) {
		return result;
	}
	outboard_libpq.clear(result);
	return NULL;
}
