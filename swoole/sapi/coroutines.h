/*
 * Swoole's coroutines, as coroutines.c has them and the files of their waits use them.
 */
#ifndef OUTBOARD_SWOOLE_COROUTINE_H
#define OUTBOARD_SWOOLE_COROUTINE_H

#include "swoole/sapi/swoole.h"

typedef struct outboard_program_record {
	zend_long id;
	zend_long parent;
	coroutine *runs_on; /* NULL before it has begun */
	zend_fcall_info call;
	zend_fcall_info_cache cache;
	zval context;    /* of getContext() */
	zval *deferred;  /* callables, the last is called first */
	uint32_t deferred_count;
	uint64_t *awaited_by; /* the waiters for its end */
	uint32_t awaited_count;
	bool is_yielded; /* waits for a resume() */
	int64_t began_us;
} outboard_swoole_record;

/* Why a wait has ended: `wait_ended` of a coroutine. */
enum outboard_swoole_reason {
	OUTBOARD_SWOOLE_OVER,      /* the time is over, or the awaited event has occurred */
	OUTBOARD_SWOOLE_RESUMED,   /* by another coroutine */
	OUTBOARD_SWOOLE_CANCELLED, /* by Coroutine::cancel() */
};

outboard_swoole_record *outboard_swoole_record_of(zend_long id);

/* wait.c */
extern const zend_function_entry outboard_swoole_wait_functions[];
bool outboard_swoole_may_wait(void);
enum outboard_swoole_reason outboard_swoole_wait(int64_t timeout_us);
bool outboard_swoole_continue(coroutine *one, enum outboard_swoole_reason reason);
int64_t outboard_swoole_timeout_us(double seconds);

/* preemption.c */
extern const zend_function_entry outboard_swoole_preemption_functions[];
ZEND_INI_MH(outboard_swoole_on_preemptive);
void outboard_swoole_preemption_start(void);

/* channel.c */
void outboard_swoole_channel_startup(bool has_short_names);

#endif
