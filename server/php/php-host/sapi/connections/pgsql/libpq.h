/*
 * The part of libpq that the files of connections/pgsql use; the library is loaded by PHP's extensions,
 * if at all, and its header need not be installed. Named and numbered as in libpq-fe.h, whose interface is stable.
 */
#ifndef OUTBOARD_LIBPQ_H
#define OUTBOARD_LIBPQ_H

#include "connections/connections.h"

typedef struct pg_conn PGconn;
typedef struct pg_result PGresult;
typedef unsigned int Oid;

typedef struct {
	char *keyword;
	char *envvar;
	char *compiled;
	char *val;
	char *label;
	char *dispchar;
	int dispsize;
} PQconninfoOption;

enum { CONNECTION_OK = 0, PQTRANS_IDLE = 0,
	PGRES_COMMAND_OK = 1, PGRES_TUPLES_OK = 2, PGRES_COPY_OUT = 3, PGRES_COPY_IN = 4, PGRES_COPY_BOTH = 8 };

PGconn *PQconnectdb(const char *parameters);
void PQfinish(PGconn *conn);
int PQbackendPID(const PGconn *conn);
int PQconsumeInput(PGconn *conn);
PGresult *PQgetResult(PGconn *conn);
PGresult *PQexec(PGconn *conn, const char *query);
PGresult *PQprepare(PGconn *conn, const char *name, const char *query, int count, const Oid *types);
PGresult *PQexecParams(PGconn *conn, const char *query, int count, const Oid *types, const char *const *values,
	const int *lengths, const int *formats, int format);
PGresult *PQexecPrepared(PGconn *conn, const char *name, int count, const char *const *values, const int *lengths,
	const int *formats, int format);
int PQsendQuery(PGconn *conn, const char *query);
int PQsendQueryParams(PGconn *conn, const char *query, int count, const Oid *types, const char *const *values,
	const int *lengths, const int *formats, int format);
int PQsendPrepare(PGconn *conn, const char *name, const char *query, int count, const Oid *types);
int PQsendQueryPrepared(PGconn *conn, const char *name, int count, const char *const *values, const int *lengths,
	const int *formats, int format);

/* What is not replaced, found when the first connection is opened. */
typedef struct {
	PGconn *(*connect_with)(const char *const *names, const char *const *values, int expands);
	void (*reset)(PGconn *conn);
	int (*status)(const PGconn *conn);
	int (*socket)(const PGconn *conn);
	int (*is_encrypted)(PGconn *conn);
	int (*transaction)(const PGconn *conn);
	int (*session)(const PGconn *conn);
	char *(*error)(const PGconn *conn);
	PQconninfoOption *(*parameters)(PGconn *conn);
	void (*free_parameters)(PQconninfoOption *options);
	PGresult *(*exec)(PGconn *conn, const char *query);
	PGresult *(*prepare)(PGconn *conn, const char *name, const char *query, int count, const Oid *types);
	int (*result_status)(const PGresult *result);
	int (*rows)(const PGresult *result);
	char *(*value)(const PGresult *result, int row, int column);
	void (*clear)(PGresult *result);
} libpq;

extern libpq outboard_libpq;

/* What a session of the boot consists of, beyond what it was opened with. */
typedef struct {
	outboard_bytes queries; /* one text, with its zero */
	outboard_bytes prepared; /* names and texts of statements, each with its zero */
	const char *refusal;
} pgsql_session;

/* connections/pgsql.c */
bool outboard_libpq_find(void);
void outboard_pgsql_use(const PGconn *conn);
void outboard_pgsql_note_query(const PGconn *conn, const char *query);

/* connections/pgsql/session.c */
bool outboard_pgsql_sets_own(const char *text);
void outboard_pgsql_note(pgsql_session *session, const char *text);
void outboard_pgsql_examine(PGconn *conn, pgsql_session *session);
bool outboard_pgsql_replay(const pgsql_session *session, PGconn *conn);

#endif
