/*
 * Connections of mysqlnd, which mysqli and PDO use: what connections/mysql.c and the files of connections/mysql share,
 * one block per file.
 */
#ifndef OUTBOARD_MYSQL_CONNECTIONS_H
#define OUTBOARD_MYSQL_CONNECTIONS_H

#include "connections/connections.h"
#include "ext/mysqlnd/mysqlnd.h"
#include "ext/mysqlnd/mysqlnd_structs.h"
#include "ext/mysqlnd/mysqlnd_ext_plugin.h"

/* Of the protocol. */
enum { MYSQL_COM_INIT_DB = 2, MYSQL_COM_QUERY = 3, MYSQL_COM_RESET_CONNECTION = 31 };

typedef struct mysql_connection {
	MYSQLND_CONN_DATA *conn;
	/* What it was opened with, each part with its length. */
	outboard_bytes host;
	outboard_bytes user;
	outboard_bytes password;
	outboard_bytes database;
	outboard_bytes socket;
	unsigned int port;
	unsigned int flags;
	const MYSQLND_CHARSET *charset; /* as it was opened */
	outboard_bytes key; /* two connections with one key are interchangeable */
	outboard_place place;
	outboard_bytes replayed; /* commands of the boot that have changed the session */
	uint32_t replays;
	size_t last_replay; /* where the last one begins, until its result is known; SIZE_MAX: none */
	const char *refusal; /* why it cannot be opened again; NULL: it can */
	bool is_open;
	bool is_of_boot;
	bool is_dormant; /* of the boot, and was not used since the snapshot */
	bool has_database; /* a reset brings it back */
	bool is_changed; /* by a command that a reset does not undo: its user, or its database where it had none */
	bool takes_several; /* statements in one command */
	bool was_kept; /* the server has said that it does no more for a new connection than a reset */
	struct mysql_connection *next;
} mysql_connection;

/* connections/mysql/records.c */
mysql_connection *outboard_mysql_first(void);
mysql_connection *outboard_mysql_begin(MYSQLND_CONN_DATA *conn, MYSQLND_CSTRING host, MYSQLND_CSTRING user,
	MYSQLND_CSTRING password, MYSQLND_CSTRING database, unsigned int port, MYSQLND_CSTRING socket, unsigned int flags);
bool outboard_mysql_has_dormant(void);
void outboard_mysql_is_closed(mysql_connection *one);
mysql_connection *outboard_mysql_find(const MYSQLND_CONN_DATA *conn);
int outboard_mysql_descriptor(const MYSQLND_CONN_DATA *conn);
bool outboard_mysql_is_plain(const MYSQLND_CONN_DATA *conn);
void outboard_mysql_is_awake(mysql_connection *one);

/* connections/mysql/reopening.c */
bool outboard_mysql_reopening_startup(const MYSQLND_CLASS_METHODS_TYPE(mysqlnd_conn_data) *methods);
bool outboard_mysql_wake(mysql_connection *one);

/* connections/mysql/notes.c */
void outboard_mysql_notes_startup(MYSQLND_CLASS_METHODS_TYPE(mysqlnd_command) *table);

/* connections/mysql/session.c */
void outboard_mysql_command(outboard_bytes *to, unsigned char command, const char *text, size_t len);
void outboard_mysql_note_statement(mysql_connection *one, const char *text, size_t len);
void outboard_mysql_note_database(mysql_connection *one, const char *name, size_t len);
void outboard_mysql_note_result(mysql_connection *one, bool has_failed);
const char *outboard_mysql_refusal(const mysql_connection *one);
uint32_t outboard_mysql_reset_commands(const mysql_connection *one, outboard_bytes *commands);
bool outboard_mysql_replay(const mysql_connection *one, MYSQLND_CONN_DATA *target);
size_t outboard_mysql_greeting(const MYSQLND_CONN_DATA *conn, char *target, size_t size);

/* connections/mysql/statements.c */
void outboard_mysql_statements_startup(struct st_mnd_stmt_xetters *statements);
void outboard_mysql_statements_close(void);

#endif
