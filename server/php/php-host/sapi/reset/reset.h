/*
 * Declarations that the files of the reset share, one block per file. Each file saves a baseline
 * when the script has booted, and restores what `changes` names.
 */
#ifndef OUTBOARD_RESET_H
#define OUTBOARD_RESET_H

#include "state/state.h"

/* What a request can change. */
enum outboard_change {
	OUTBOARD_ENVIRONMENT = 1,
	OUTBOARD_DIRECTORY = 2,
	OUTBOARD_UMASK = 4,
	OUTBOARD_LOCALE = 8,
	OUTBOARD_TIME_ZONE = 16,
	OUTBOARD_MBSTRING = 32,
	OUTBOARD_LIBXML = 64,
	OUTBOARD_TRANSACTION = 128,
	OUTBOARD_ASSERTION = 256,
	OUTBOARD_WRAPPERS = 512,
	OUTBOARD_FILTERS = 1024,
	OUTBOARD_CONTEXT = 2048,
	OUTBOARD_SEED = 4096,
	OUTBOARD_LOCK = 8192,
	OUTBOARD_REWRITING = 16384,
	OUTBOARD_LIBXML_CONTEXT = 32768,
	OUTBOARD_TICKS = 65536,
};

/* reset/changes.c: what was changed since the last reset. */
extern uint32_t outboard_changes;

/* reset/reset.c */
void outboard_reset_startup(const outboard_start *start);
void outboard_reset_baseline(void);
void outboard_reset_session_path(void);
void outboard_reset_random(void);
void outboard_reset_after(outboard_request_state *state);

/* reset/ini.c */
void outboard_save_ini(void);
void outboard_reset_ini(void);

/* reset/process.c */
void outboard_save_process(void);
void outboard_reset_process(uint32_t changes);

/* reset/settings.c */
void outboard_call_if_exists(const char *function, zval *argument, zval *result);
void outboard_save_settings(void);
void outboard_track_libxml_context(const zval *context);
void outboard_reset_settings(uint32_t changes);

/* reset/libraries.c */
void outboard_save_libraries(void);
void outboard_reset_libraries(void);

/* reset/streams.c */
void outboard_save_streams(void);
void outboard_reset_streams(uint32_t changes);

/* reset/transactions.c */
void outboard_transactions_startup(void);
void outboard_track_transaction(zend_execute_data *call, bool is_method);
void outboard_roll_back(zend_object *connection, bool autocommit);

/* reset/held_resources.c */
void outboard_hold_transaction(zend_object *connection, bool autocommit, bool keep);
void outboard_track_lock(zval *file);
void outboard_clear_held(void);
bool outboard_release_held(outboard_request_state *state);

#endif
