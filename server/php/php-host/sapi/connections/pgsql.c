/*
 * Connections of libpq over a snapshot, by replacements for its functions, which PHP's extensions find in this program
 * (build.rs).
 *
 * At the snapshot each connection of the boot is closed. Before its first query in a request it is opened again,
 * and its session is set up as the server has described it. No connection is used by two requests: a server lists
 * neither a program's own settings nor what its procedural languages and extensions remember, and DISCARD ALL leaves
 * both, so no session can be proved to be as new. Called by closing.c. Invariant: a query is sent on no
 * connection whose session is not as the program has left it.
 */
#include "connections/pgsql/libpq.h"
#include "interpose.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

libpq outboard_libpq;

/* Of the boot. */
typedef struct connection {
	PGconn *conn;
	outboard_place place;
	pgsql_session session;
	int number; /* of the server's process */
	bool is_dormant;
	struct connection *next;
} connection;

static connection *connections;
/* How many are dormant. */
static uint32_t dormant;

static void *function(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* False: it is another libpq than expected. */
bool outboard_libpq_find(void)
{
	libpq *const all = &outboard_libpq;
	const struct {
		const char *name;
		void **target;
	} names[] = {
		{"PQconnectdbParams", (void **) &all->connect_with}, {"PQreset", (void **) &all->reset},
		{"PQstatus", (void **) &all->status}, {"PQsocket", (void **) &all->socket},
		{"PQsslInUse", (void **) &all->is_encrypted}, {"PQtransactionStatus", (void **) &all->transaction},
		{"PQbackendPID", (void **) &all->session}, {"PQerrorMessage", (void **) &all->error},
		{"PQconninfo", (void **) &all->parameters},
		{"PQconninfoFree", (void **) &all->free_parameters}, {"PQexec", (void **) &all->exec},
		{"PQprepare", (void **) &all->prepare}, {"PQresultStatus", (void **) &all->result_status},
		{"PQntuples", (void **) &all->rows}, {"PQgetvalue", (void **) &all->value},
		{"PQclear", (void **) &all->clear},
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		*names[i].target = function(names[i].name);
		if (!*names[i].target) {
			return false;
		}
	}
	return true;
}

static connection *find(const PGconn *conn)
{
	connection *one = connections;
	while (one && one->conn != conn) {
		one = one->next;
	}
	return one;
}

static void note(PGconn *conn)
{
	connection *one = find(conn);
	if (!one) {
		one = pecalloc(1, sizeof(*one), 1);
		one->next = connections;
		connections = one;
	}
	one->conn = conn;
	one->session = (pgsql_session) {0};
	one->number = outboard_libpq.session(conn);
	outboard_place_here(&one->place);
}

PGconn *PQconnectdb(const char *parameters)
{
	REAL(PQconnectdb);
	PGconn *conn = real(parameters);
	if (conn && outboard_connections_in_boot() && (outboard_libpq.clear || outboard_libpq_find())
		&& outboard_libpq.status(conn) == CONNECTION_OK) {
		note(conn);
	}
	return conn;
}

/* By its own parameters, the password included. */
static PGconn *open_fresh(PGconn *conn)
{
	const char *names[128];
	const char *values[128];
	size_t count = 0;
	PQconninfoOption *options = outboard_libpq.parameters(conn);
	for (const PQconninfoOption *one = options; one && one->keyword && count < 127; one++) {
		if (one->val) {
			names[count] = one->keyword;
			values[count++] = one->val;
		}
	}
	OUTBOARD_ASSERT(count < sizeof(names) / sizeof(*names));
	names[count] = values[count] = NULL;
	PGconn *fresh = options ? outboard_libpq.connect_with(names, values, 0) : NULL;
	outboard_libpq.free_parameters(options);
	return fresh;
}

/*
 * An encrypted connection is opened again by libpq. Another one takes the descriptor of one that is opened beside
 * it, and is forgotten with memory that goes at the request's end: libpq keeps its state of the boot.
 */
static bool open_again(connection *one)
{
	const bool is_encrypted = outboard_libpq.is_encrypted(one->conn);
	PGconn *opened = one->conn;
	if (is_encrypted) {
		outboard_libpq.reset(one->conn);
	} else {
		opened = open_fresh(one->conn);
	}
	if (opened && outboard_libpq.status(opened) == CONNECTION_OK && outboard_pgsql_replay(&one->session, opened)) {
		one->number = outboard_libpq.session(opened);
		if (opened == one->conn) {
			return true;
		}
		/* A server may have begun to encrypt; its descriptor alone is worth nothing. */
		if (!outboard_libpq.is_encrypted(opened)) {
			const int copy = fcntl(outboard_libpq.socket(opened), F_DUPFD_CLOEXEC, 3);
			close(outboard_libpq.socket(opened));
			outboard_replace_descriptor(copy, outboard_libpq.socket(one->conn));
			return true;
		}
	}
	char *why;
	spprintf(&why, 0, "the connection to PostgreSQL of the boot (%s) cannot be opened again: %s", one->place.text,
		opened ? outboard_libpq.error(opened) : "out of memory");
	php_log_err_with_severity(why, LOG_WARNING);
	efree(why);
	return false;
}

static void wake(connection *one)
{
	one->is_dormant = false;
	dormant--;
	if (one->session.refusal) {
		outboard_connection_is_refused("connection to PostgreSQL", one->place.text, one->session.refusal);
	} else {
		open_again(one);
	}
}

/* A connection is about to be used. If it cannot be opened, libpq finds it closed. */
void outboard_pgsql_use(const PGconn *conn)
{
	connection *one = dormant > 0 ? find(conn) : NULL;
	if (one && one->is_dormant) {
		wake(one);
	}
}

void PQfinish(PGconn *conn)
{
	REAL(PQfinish);
	connection *one = connections ? find(conn) : NULL;
	if (one) {
		dormant -= one->is_dormant;
		one->conn = NULL;
		one->is_dormant = false;
	}
	real(conn);
}

/* In the zygote, before its snapshot. */
void outboard_pgsql_close(void)
{
	static const char goodbye[5] = {'X', 0, 0, 0, 4};
	for (connection *one = connections; one; one = one->next) {
		if (!one->conn || outboard_libpq.status(one->conn) != CONNECTION_OK) {
			continue;
		}
		outboard_pgsql_examine(one->conn, &one->session);
		const int fd = outboard_libpq.socket(one->conn);
		if (!outboard_libpq.is_encrypted(one->conn)) {
			send(fd, goodbye, sizeof(goodbye), MSG_NOSIGNAL | MSG_DONTWAIT);
		}
		one->is_dormant = true;
		dormant++;
		outboard_connection_sever(fd);
	}
}

/* The server's process behind a connection, which is not the one that libpq remembers. */
int PQbackendPID(const PGconn *conn)
{
	REAL(PQbackendPID);
	outboard_pgsql_use(conn);
	const connection *one = connections ? find(conn) : NULL;
	return one ? one->number : real(conn);
}

/* In the boot: what a statement sets that the server does not list. */
void outboard_pgsql_note_query(const PGconn *conn, const char *query)
{
	connection *one = find(conn);
	if (one) {
		outboard_pgsql_note(&one->session, query);
	}
}
