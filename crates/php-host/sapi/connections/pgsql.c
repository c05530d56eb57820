/*
 * Connections of libpq over a snapshot and over requests, by replacements for its functions, which PHP's extensions
 * find in this program (build.rs).
 *
 * At the snapshot each connection of the boot is closed. Before its first query in a request it is opened again,
 * and its session is set up as the server has described it. A worker that is rewound keeps the descriptor of each
 * connection that is in order at the end of a request, and uses it for the next one that would be opened with
 * the same. Called by connections.c. Invariants: a query is sent on no connection whose session is not as the
 * program has left it; a connection that is encrypted is not kept, because its state is in memory that is put
 * back.
 */
#include "connections/pgsql/libpq.h"
#include "interpose.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

libpq outboard_libpq;

typedef struct connection {
	PGconn *conn;
	outboard_bytes key; /* two connections with one key are interchangeable */
	outboard_bytes greeting;
	outboard_place place;
	pgsql_session session; /* of the boot */
	int number; /* of the server's process */
	bool is_of_boot;
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

static bool find_functions(void)
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
		{"PQparameterStatus", (void **) &all->parameter}, {"PQconninfo", (void **) &all->parameters},
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

static connection *note(PGconn *conn, const char *parameters)
{
	connection *one = find(conn);
	if (!one) {
		one = pecalloc(1, sizeof(*one), 1);
		one->next = connections;
		connections = one;
	}
	one->conn = conn;
	one->is_of_boot = outboard_connections_in_boot();
	one->is_dormant = false;
	one->number = outboard_libpq.session(conn);
	one->key.len = 0;
	outboard_bytes_add_part(&one->key, "pgsql", 5);
	outboard_bytes_add_part(&one->key, parameters, strlen(parameters));
	if (one->is_of_boot) {
		outboard_place_here(&one->place);
	} else {
		outboard_pgsql_greeting(conn, &one->greeting);
	}
	return one;
}

/* Opens a connection that was kept; NULL: there is none. */
static PGconn *adopt(const char *parameters)
{
	outboard_bytes key = {0};
	uint64_t session;
	const char *greeting;
	size_t len;
	outboard_bytes_add_part(&key, "pgsql", 5);
	outboard_bytes_add_part(&key, parameters, strlen(parameters));
	const int kept = outboard_rs_take_connection(outboard_events, key.bytes, key.len, &session, &greeting, &len);
	outboard_bytes_free(&key);
	if (kept < 0) {
		return NULL;
	}
	/* A kept connection is not encrypted, so libpq need not ask for it. */
	const char *const names[] = {"dbname", "sslmode", "gssencmode", NULL};
	const char *const values[] = {parameters, "disable", "disable", NULL};
	PGconn *conn = outboard_adoption_begin(greeting, len) ? outboard_libpq.connect_with(names, values, 1) : NULL;
	const bool is_connected = conn && outboard_libpq.status(conn) == CONNECTION_OK;
	if (outboard_adoption_end(is_connected ? outboard_libpq.socket(conn) : -1, kept)) {
		return conn;
	}
	if (conn) {
		REAL(PQfinish);
		real(conn);
	}
	return NULL;
}

PGconn *PQconnectdb(const char *parameters)
{
	REAL(PQconnectdb);
	const bool is_noted = outboard_connections_in_boot() || outboard_keeps_connections();
	if (!is_noted || (!outboard_libpq.clear && !find_functions())) {
		return real(parameters);
	}
	PGconn *conn = outboard_keeps_connections() ? adopt(parameters) : NULL;
	if (!conn) {
		conn = real(parameters);
	}
	if (conn && outboard_libpq.status(conn) == CONNECTION_OK) {
		note(conn, parameters);
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
	names[count] = values[count] = NULL;
	PGconn *fresh = options ? outboard_libpq.connect_with(names, values, 0) : NULL;
	outboard_libpq.free_parameters(options);
	return fresh;
}

static bool take_kept(connection *one)
{
	uint64_t session;
	const char *greeting;
	size_t len;
	const int kept = outboard_rs_take_connection(outboard_events, one->key.bytes, one->key.len, &session, &greeting,
		&len);
	if (kept < 0) {
		return false;
	}
	outboard_replace_descriptor(kept, outboard_libpq.socket(one->conn));
	one->number = (int) session;
	return true;
}

/*
 * An encrypted connection is opened again by libpq. Another one takes the descriptor of one that is opened beside
 * it, and is forgotten with memory that goes at the request's end: libpq keeps its state of the boot, as with a
 * descriptor that was kept.
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
	} else if (!take_kept(one)) {
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

static bool keep(connection *one)
{
	const int transaction = outboard_libpq.transaction(one->conn);
	const bool is_open = transaction == PQTRANS_INTRANS || transaction == PQTRANS_INERROR;
	const int fd = outboard_libpq.socket(one->conn);
	outboard_bytes reset = {0};
	if (one->is_dormant || one->session.refusal || fd < 0 || (!is_open && transaction != PQTRANS_IDLE)
		|| outboard_libpq.is_encrypted(one->conn) || !outboard_is_quiet(fd)) {
		return false;
	}
	outboard_kept_offer offer = {
		.protocol = OUTBOARD_POSTGRESQL,
		.session = (uint64_t) one->number,
		.key = one->key.bytes,
		.key_len = one->key.len,
		.greeting = one->greeting.bytes,
		.greeting_len = one->greeting.len,
	};
	offer.replies = outboard_pgsql_reset_messages(one->is_of_boot ? &one->session : NULL, is_open, &reset);
	offer.reset = reset.bytes;
	offer.reset_len = reset.len;
	const bool is_kept = outboard_rs_keep_connection(outboard_events, fd, &offer);
	outboard_bytes_free(&reset);
	return is_kept;
}

void PQfinish(PGconn *conn)
{
	REAL(PQfinish);
	connection *one = connections ? find(conn) : NULL;
	int end = -1;
	if (one && one->is_dormant) {
		dormant--;
	} else if (one && outboard_keeps_connections() && keep(one)) {
		end = outboard_divert(outboard_libpq.socket(conn));
	}
	if (one) {
		one->conn = NULL;
		one->is_dormant = false;
	}
	real(conn);
	if (end >= 0) {
		close(end);
	}
}

/* What a request has not closed: connections of the boot, and persistent ones. */
void outboard_pgsql_keep(void)
{
	for (connection *one = connections; one; one = one->next) {
		if (one->conn) {
			keep(one);
		}
	}
}

/* In the zygote, before its snapshot. */
void outboard_pgsql_close(void)
{
	static const char goodbye[5] = {'X', 0, 0, 0, 4};
	uint32_t index = 0;
	for (connection *one = connections; one; one = one->next) {
		if (!one->conn || outboard_libpq.status(one->conn) != CONNECTION_OK) {
			continue;
		}
		outboard_pgsql_examine(one->conn, &one->session);
		const int fd = outboard_libpq.socket(one->conn);
		if (!outboard_libpq.is_encrypted(one->conn)) {
			send(fd, goodbye, sizeof(goodbye), MSG_NOSIGNAL | MSG_DONTWAIT);
		}
		/* What is kept for this one has its session, which no other has. */
		index++;
		outboard_bytes_add(&one->key, &index, sizeof(index));
		outboard_bytes_add(&one->greeting, "", 1);
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
