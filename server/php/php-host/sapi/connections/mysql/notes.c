/*
 * Commands of mysqlnd that change a session: noted in the boot, so that they can be repeated, and in a request, if
 * a reset does not undo what they do.
 *
 * Installed by connections/mysql.c; what a statement does is judged by connections/mysql/session.c.
 */
#include "connections/mysql.h"

static MYSQLND_CLASS_METHODS_TYPE(mysqlnd_command) commands;

static enum_func_status query_noted(MYSQLND_CONN_DATA *const conn, MYSQLND_CSTRING query)
{
	mysql_connection *one = outboard_mysql_find(conn);
	if (one && outboard_connections_in_boot()) {
		outboard_mysql_note_statement(one, query.s, query.l);
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

void outboard_mysql_notes_startup(MYSQLND_CLASS_METHODS_TYPE(mysqlnd_command) *table)
{
	commands = *table;
	table->query = query_noted;
	table->reap_result = result_noted;
	table->init_db = database_noted;
	table->change_user = user_noted;
	table->set_option = option_noted;
}
