/*
 * Handles of php://input, which all read the one stream of the request's body. Called by
 * request_state.c at a request's end, before that stream is closed.
 *
 * Invariant: a handle that outlives its request (a request object in a service, an SplFileObject)
 * is at its end. It is not closed, because objects of PHP point to the stream itself; unchanged, it
 * would read freed memory or the body of another request.
 */
#include "state/state.h"
#include "ext/standard/file.h"

/* A copy of php_stream_input_t in ext/standard/php_fopen_wrapper.c, which is not exported. */
typedef struct {
	php_stream *body;
	zend_off_t position;
} input;

static ssize_t read_nothing(php_stream *stream, char *buffer, size_t count)
{
	(void) buffer;
	(void) count;
	stream->eof = 1;
	return 0;
}

static ssize_t write_nothing(php_stream *stream, const char *buffer, size_t count)
{
	(void) stream;
	(void) buffer;
	(void) count;
	return -1;
}

static int flush_nothing(php_stream *stream)
{
	(void) stream;
	return 0;
}

static int close_ended(php_stream *stream, int close_handle)
{
	(void) close_handle;
	efree(stream->abstract);
	stream->abstract = NULL;
	return 0;
}

static const php_stream_ops ended_ops = {
	.write = write_nothing,
	.read = read_nothing,
	.close = close_ended,
	.flush = flush_nothing,
	.label = "Input",
};

static bool reads(const php_stream *stream, const php_stream *body)
{
	return strcmp(stream->ops->label, "Input") == 0 && stream->ops != &ended_ops
		&& ((const input *) stream->abstract)->body == body;
}

static void end_handle(php_stream *stream)
{
	OUTBOARD_ASSERT(stream->ops != &ended_ops && stream->abstract);
	stream->ops = &ended_ops;
	stream->readpos = 0;
	stream->writepos = 0;
	stream->eof = 1;
}

/* Resources are numbered in order, so handles follow the body's stream. */
void outboard_close_handles_of(const php_stream *body)
{
	OUTBOARD_ASSERT(body->res);
	zend_long last = EG(regular_list).nNextFreeElement;
	for (zend_long handle = body->res->handle + 1; handle < last; handle++) {
		const zval *found = zend_hash_index_find(&EG(regular_list), (zend_ulong) handle);
		if (found && Z_RES_TYPE_P(found) == php_file_le_stream()
			&& reads(Z_RES_VAL_P(found), body)) {
			end_handle(Z_RES_VAL_P(found));
		}
	}
}
