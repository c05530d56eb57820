/*
 * The lists of hooks.h: which subject does what at which station, in which order. The one place that names them all; to
 * leave a subject out is to leave its lines out.
 *
 * Called by engine/module.c. Invariant: where the order matters, the reason stands beside it.
 */
#include "engine/engine.h"
#include "api/api.h"
#include "connections/connections.h"
#include "debugger/debugger.h"
#include "doctor/doctor.h"
#include "fork/fork.h"
#include "opcache/opcache.h"
#include "process/process.h"
#include "reset/reset.h"
#include "rewind/rewind.h"
#include "snapshot/snapshot.h"
#include "tracing/tracing.h"
#include "waiting/waiting.h"
#include "worker/worker.h"

/* Programs that start a server: a part (build/parts.rs); without it, its lines are not there. */
#ifdef OUTBOARD_PROGRAMS
# include "parts.h"
# define PROGRAMS(hook) hook,
#else
# define PROGRAMS(hook)
#endif

static void add_functions(void)
{
	static const zend_function_entry *const tables[] = {
		outboard_page_cache_functions, outboard_snapshot_functions, outboard_snapshot_call_functions,
		outboard_task_functions, outboard_span_functions, outboard_worker_functions, outboard_resume_functions,
		outboard_engine_functions, outboard_request_functions, outboard_kv_functions, outboard_sanitizer_functions,
	};
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		zend_register_functions(NULL, tables[i], NULL, MODULE_PERSISTENT);
	}
}

static const outboard_hook engine_module[] = {
	outboard_debugger_choose,
	outboard_variables_startup,
	outboard_user_ini_startup,
	/* Before opcache's post-startup, which wraps the functions that it finds (ZendAccelerator.c). */
	outboard_script_hook,
	outboard_request_readers_startup,
	outboard_backtrace_hook,
	add_functions,
	outboard_connection_guard_class,
	NULL,
};

static const outboard_hook engine_started[] = {
	outboard_waiting_startup,
	outboard_handled_hook,
	outboard_variables_hook,
	outboard_opcache_hook,
	outboard_filter_startup,
	outboard_time_limit_hook,
	outboard_database_span_startup,
	outboard_children_startup,
	outboard_process_changes_startup,
	outboard_sanitizer_startup,
	NULL,
};

static void (*const fault[])(const char *) = {outboard_stack_report_overflow, NULL};

static void (*const script_prepare[])(const outboard_start *) = {
	outboard_doctor_startup,
	PROGRAMS(outboard_program_add_module)
	outboard_frankenphp_add,
	/* The request that PHP's start-up reads. */
	outboard_boot_request_describe,
	NULL,
};

static void enter_script(const outboard_start *start)
{
	if (start->boot_request) {
		outboard_script_enter(start->boot_request);
	}
}

static void catch_faults(const outboard_start *start)
{
	(void) start;
	outboard_crash_startup();
}

static void (*const script_start[])(const outboard_start *) = {
	/* First: it looks for the time of PHP's start-up in OPcache's memory, and nothing else may have been there. */
	outboard_opcache_clock_find,
	catch_faults,
	outboard_connection_guard_startup,
	/* It wraps the functions that the guard has wrapped. */
	outboard_persistent_startup,
	outboard_connections_startup,
	/* It asks the connections whether a boot is recorded. */
	outboard_boot_engines_startup,
	outboard_reset_startup,
	outboard_boot_request_import_cookies,
	enter_script,
	/* Last: what the host itself has read of the request does not count. */
	outboard_request_reads_start,
	NULL,
};

static const outboard_hook runtime_loaded[] = {
	PROGRAMS(outboard_program_boot)
	/* Of classes that the boot has compiled. */
	PROGRAMS(outboard_program_requests_startup)
	NULL,
};
static const outboard_hook script_ended[] = {PROGRAMS(outboard_program_end) NULL};
static const outboard_hook boot_failed[] = {outboard_tripwire_end, outboard_boot_files_end, NULL};
static const outboard_hook script_over[] = {outboard_child_end, NULL};

static const outboard_hook boot_ended[] = {
	/* What follows reads as well. */
	outboard_request_reads_end_all,
	outboard_output_end,
	outboard_boot_files_end,
	outboard_request_state_end_boot,
	outboard_reset_baseline,
	outboard_process_changes_accept,
	outboard_one_shot_prepare,
	outboard_connections_close,
	/* Last: it returns once more after each request, to a memory that has all of the above. */
	outboard_rewind_mark,
	NULL,
};

static const outboard_hook forked[] = {
	/* First: a worker that was just forked goes back to the mark, and comes here once more. */
	outboard_rewind_to_mark,
	outboard_one_shot_begin,
	outboard_reopen_files,
	outboard_renewed_open,
	outboard_reset_random,
	outboard_boot_engines_seed,
	NULL,
};

static const outboard_hook fork_ended[] = {outboard_one_shot_end, NULL};
static const outboard_hook fork_done[] = {outboard_rewind, NULL};
static const outboard_hook rewind_due[] = {outboard_connections_keep, NULL};

/* At each start of PHP's request: the engine puts its own handler back. */
static const outboard_hook classic_started[] = {outboard_kv_hook, outboard_debugger_request, NULL};
static bool (*const answer[])(const outboard_request *) = {outboard_opcache_answer, NULL};
static const outboard_hook request_due[] = {outboard_doctor_examine, outboard_debugger_request, NULL};
static void (*const request_began[])(const outboard_request *) = {outboard_opcache_clock_set, NULL};
static const outboard_hook request_read[] = {outboard_reset_session_path, NULL};
static bool (*const handler_due[])(outboard_request_state *) = {outboard_resume_before_handler, NULL};

static const outboard_hook request_ended[] = {
	/* Before signals are put back: the end of a child raises one. */
	outboard_children_reap,
	outboard_process_changes_revert,
	NULL,
};

static void (*const state_ended[])(outboard_request_state *) = {outboard_reset_after, NULL};
static void (*const variable_read[])(const char *) = {outboard_request_reads_add_variable, NULL};

static void (*const raw_request[])(zval *, const outboard_event *) = {PROGRAMS(outboard_program_answer) NULL};
static void (*const raw_cancel[])(void *) = {PROGRAMS(outboard_program_cancel) NULL};
static const outboard_hook stream_event[] = {PROGRAMS(outboard_program_receive) NULL};

static const outboard_hook child_due[] = {outboard_request_reads_note_fork, NULL};
static const outboard_hook child_loop[] = {outboard_loop_forget, PROGRAMS(outboard_program_forget_coroutines) NULL};
static const outboard_hook code_ended[] = {outboard_child_code_ended, NULL};

static bool (*const connects[])(int, const void *) = {outboard_debugger_connects, outboard_connections_connect, NULL};
static void (*const severed_used[])(int) = {outboard_severed_is_used, NULL};

#define LIST(name) .name = name

const outboard_hooks outboard_subjects = {
	LIST(engine_module), LIST(engine_started), LIST(fault),
	LIST(script_prepare), LIST(script_start), LIST(runtime_loaded), LIST(script_ended), LIST(boot_failed),
	LIST(script_over), LIST(boot_ended), LIST(forked), LIST(fork_ended), LIST(fork_done), LIST(rewind_due),
	LIST(classic_started), LIST(answer), LIST(request_due), LIST(request_began), LIST(request_read), LIST(handler_due),
	LIST(request_ended), LIST(state_ended), LIST(variable_read),
	LIST(raw_request), LIST(raw_cancel), LIST(stream_event),
	LIST(child_due), LIST(child_loop), LIST(code_ended),
	LIST(connects), LIST(severed_used),
};
