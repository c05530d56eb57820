/*
 * Conversations of a Swoole\Http\Server: what the files http*.c share.
 */
#ifndef OUTBOARD_SWOOLE_HTTP_H
#define OUTBOARD_SWOOLE_HTTP_H

#include "swoole/sapi/swoole.h"

typedef struct {
	zend_long id;
	void *exchange;
	const outboard_request *request;
	zend_string *body;
	HashTable *uploads; /* paths of temporary files */
	coroutine *handler; /* while it runs */
	bool has_head;
	bool is_ended;
	bool is_detached;
	bool is_abandoned; /* its end is not that of the program */
	bool is_gone; /* nobody hears the rest */
} conversation;

/* A function of swoole/runtime/Http.php. */
#define HTTP_FUNCTION(name) ZEND_NS_FENTRY("Outboard\\Engine\\Swoole", http_##name, \
	ZEND_FN(outboard_swoole_http_##name), arginfo_any, 0)

/* NULL when it is over. */
conversation *outboard_swoole_http_find(zend_long id);
/* By the number that is the function's first argument. */
conversation *outboard_swoole_http_named(INTERNAL_FUNCTION_PARAMETERS);
void outboard_swoole_http_make_response(const conversation *one, zval *response);
void outboard_swoole_http_send_head(conversation *one, int status, const char *reason, size_t reason_len);
/* The response has ended. */
void outboard_swoole_http_finish(conversation *one);

#endif
