/*
 * Outboard\snapshot(): from here on the script runs once for each request, from the same memory.
 *
 * Called by the script. Invariant: a boot whose state belongs to the response of one client takes no snapshot.
 */
#include "snapshot/snapshot.h"
#include "worker/worker.h"

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_snapshot, 0, 0, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, ignored_reads, IS_ARRAY, 0, "[]")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, max_age, IS_LONG, 0, "0")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, refused_because, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

/*
 * The script continues after this call once for each request, from the same memory. In classic mode the
 * gateway learns that the script could be booted once.
 */
PHP_FUNCTION(outboard_snapshot)
{
	outboard_event event = {0};
	HashTable *ignored = NULL;
	zend_long max_age_s = 0;
	char *refused_because = NULL;
	size_t refused_because_len = 0;
	ZEND_PARSE_PARAMETERS_START(0, 3)
		Z_PARAM_OPTIONAL
		Z_PARAM_ARRAY_HT(ignored)
		Z_PARAM_LONG(max_age_s)
		Z_PARAM_STRING_OR_NULL(refused_because, refused_because_len)
	ZEND_PARSE_PARAMETERS_END();
	if (max_age_s < 0) {
		zend_argument_value_error(2, "must be 0 or more seconds");
		return;
	}
	if (!outboard_host.events && outboard_now.result) {
		outboard_now.result->takes_snapshot = true;
	}
	if (!outboard_is_booting()) {
		return;
	}
	outboard_tripwire_end();
	const char *refusal = outboard_boot_request_end();
	if (refusal || refused_because) {
		refusal ? outboard_rs_refuse_snapshot(outboard_host.events, refusal, strlen(refusal))
			: outboard_rs_refuse_snapshot(outboard_host.events, refused_because, refused_because_len);
		zend_throw_unwind_exit();
		return;
	}
	outboard_rs_boot_max_age(max_age_s);
	outboard_request_reads_end(ignored);
	outboard_begin_handling();
	OUTBOARD_ASSERT(outboard_host.is_fork && !outboard_host.records_reads);
	while (event.kind != OUTBOARD_REQUEST && event.kind != OUTBOARD_STOP) {
		outboard_rs_next(outboard_host.events, true, true, &event);
	}
	if (event.kind == OUTBOARD_STOP) {
		zend_throw_unwind_exit();
		return;
	}
	outboard_begin_main_request(&event);
	outboard_boot_request_apply();
	if (outboard_main_script.state->result.outcome != OUTBOARD_FINISHED) {
		zend_throw_unwind_exit();
		return;
	}
	outboard_resume();
}

const zend_function_entry outboard_snapshot_call_functions[] = {
	ZEND_NS_FENTRY("Outboard", snapshot, ZEND_FN(outboard_snapshot), arginfo_snapshot, 0)
	PHP_FE_END
};
