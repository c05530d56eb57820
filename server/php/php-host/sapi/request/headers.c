/*
 * The response head: status and header lines. Decides as php-fpm's sapi_cgi_send_headers and
 * nginx's handling of its `Status:` line do together.
 */
#include "request/request.h"

/* Compares the first letter first, because most lines differ there. */
static bool has_name(const sapi_header_struct *line, const char *name, size_t len)
{
	return line->header_len > len && (line->header[0] | 0x20) == (name[0] | 0x20)
		&& strncasecmp(line->header, name, len) == 0;
}

#define HAS_NAME(line, name) has_name(line, name, sizeof(name) - 1)

/* Parses "418 I'm a teapot". */
static int read_status(const char *text, const char **reason)
{
	char *end;
	long status = strtol(text, &end, 10);
	while (*end == ' ') {
		end++;
	}
	*reason = end;
	return status >= 100 && status <= 999 ? (int) status : 0;
}

static sapi_header_struct *first_status_line(sapi_headers_struct *headers)
{
	zend_llist_position position;
	sapi_header_struct *line = zend_llist_get_first_ex(&headers->headers, &position);
	while (line && !HAS_NAME(line, "Status:")) {
		line = zend_llist_get_next_ex(&headers->headers, &position);
	}
	return line;
}

/*
 * A status line ("HTTP/1.1 418 x") takes precedence if its code is not 200, then a `Status:`
 * header, then the code. A custom reason of a 200 is dropped, as in php-fpm.
 */
static int decide_status(sapi_headers_struct *headers, const char **reason)
{
	int code = headers->http_response_code;
	int status = 0;
	const char *line = headers->http_status_line;
	const char *space = line && strncasecmp(line, "HTTP/", 5) == 0 ? strchr(line, ' ') : NULL;
	if (code != 200 && space) {
		status = read_status(space + 1, reason);
	} else {
		sapi_header_struct *header = first_status_line(headers);
		if (header) {
			status = read_status(header->header + sizeof("Status:") - 1, reason);
		}
	}
	if (!status) {
		*reason = "";
		status = code;
	}
	return status;
}

/* Sends the headers so far; the final response has them again (RFC 8297). */
bool outboard_send_interim(int status)
{
	void *exchange = SG(server_context);
	if (!exchange || SG(request_info).no_headers || SG(headers_sent)) {
		return false;
	}
	outboard_rs_head(exchange, status, "", 0);
	zend_llist_position position;
	sapi_header_struct *line = zend_llist_get_first_ex(&SG(sapi_headers).headers, &position);
	for (; line; line = zend_llist_get_next_ex(&SG(sapi_headers).headers, &position)) {
		if (line->header_len > 0 && !HAS_NAME(line, "Status:")) {
			outboard_rs_head_line(exchange, line->header, line->header_len);
		}
	}
	return outboard_rs_interim(exchange);
}

int outboard_send_headers(sapi_headers_struct *headers)
{
	void *exchange = SG(server_context);
	if (!exchange || SG(request_info).no_headers) {
		return SAPI_HEADER_SENT_SUCCESSFULLY;
	}
	const char *reason = "";
	int status = decide_status(headers, &reason);
	outboard_rs_head(exchange, status, reason, strlen(reason));
	zend_llist_position position;
	sapi_header_struct *line = zend_llist_get_first_ex(&headers->headers, &position);
	for (; line; line = zend_llist_get_next_ex(&headers->headers, &position)) {
		bool dropped = line->header_len == 0 || HAS_NAME(line, "Status:")
			|| (status == 304 && HAS_NAME(line, "Content-Type:"));
		if (!dropped) {
			outboard_rs_head_line(exchange, line->header, line->header_len);
		}
	}
	/*
	 * For the page cache, which removes the line: a response of a script with a session may be
	 * private. php_session_initialize creates $_SESSION, and it stays when the session is closed.
	 * It is null while another request of a worker script has one.
	 */
	const zval *of_session = zend_hash_str_find(&EG(symbol_table), ZEND_STRL("_SESSION"));
	if (of_session && Z_TYPE_P(of_session) != IS_NULL) {
		static const char session[] = "X-Outboard-Session: 1";
		outboard_rs_head_line(exchange, session, sizeof(session) - 1);
	}
	return SAPI_HEADER_SENT_SUCCESSFULLY;
}
