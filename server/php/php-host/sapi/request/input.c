/*
 * The body and the cookies, as PHP reads them.
 */
#include "request/request.h"

static char *joined_cookies;

/* A short read means the end (sapi_read_post_block in SAPI.c). */
size_t outboard_read_post(char *buffer, size_t len)
{
	return SG(server_context) ? outboard_rs_read_body(SG(server_context), buffer, len) : 0;
}

static void find_cookies(zend_string *name, const char *value, size_t value_len, void *arg)
{
	if (zend_string_equals_literal(name, "HTTP_COOKIE")) {
		(void) value_len;
		*(char **) arg = strdup(value);
	}
}

/* One header is used in place; several (HTTP/2 may split them) are joined. */
char *outboard_read_cookies(void)
{
	size_t lines = 0;
	const outboard_str *only = NULL;
	OUTBOARD_ASSERT(outboard_now.request);
	for (size_t i = 0; i < outboard_now.request->header_count; i++) {
		const outboard_pair *header = &outboard_now.request->headers[i];
		if (header->name.len == 6 && strncasecmp(header->name.ptr, "cookie", 6) == 0) {
			only = &header->value;
			lines++;
		}
	}
	if (lines < 2) {
		return only ? (char *) only->ptr : NULL;
	}
	outboard_input_reset();
	outboard_variables_each_header(find_cookies, &joined_cookies);
	return joined_cookies;
}

void outboard_input_reset(void)
{
	free(joined_cookies);
	joined_cookies = NULL;
}
