/*
 * For whom a file reads the request while a script boots: the nearest caller that is not in its directory. Called by
 * boot_request_reads.c. Invariant: without such a caller there is none, and nothing is read on behalf of another.
 */
#include "snapshot/snapshot.h"

/* Of the current call; NULL, or a file that lives as long as the call, and the line that it has reached. */
zend_string *outboard_caller_outside(const zend_string *file, uint32_t *line)
{
	const char *slash = file ? strrchr(ZSTR_VAL(file), '/') : NULL;
	if (!slash) {
		return NULL;
	}
	const size_t len = (size_t) (slash - ZSTR_VAL(file)) + 1;
	for (const zend_execute_data *call = EG(current_execute_data); call; call = call->prev_execute_data) {
		if (!call->func || !ZEND_USER_CODE(call->func->type)) {
			continue;
		}
		zend_string *other = call->func->op_array.filename;
		if (strncmp(ZSTR_VAL(other), ZSTR_VAL(file), len) != 0) {
			OUTBOARD_ASSERT(other != file && call->opline);
			*line = call->opline->lineno;
			return other;
		}
	}
	return NULL;
}
