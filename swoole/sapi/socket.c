/*
 * What Swoole\Coroutine\Socket needs beyond the extension sockets: the descriptor of its object, and a
 * stream of the extension openssl for a connection that exists already. Called by swoole/runtime/.
 */
#include "swoole/sapi/swoole.h"
#include "ext/standard/file.h"
#include "php_network.h"
#include <fcntl.h>

/*
 * The descriptor of an object of ext/sockets, which begins with it (php_socket in php_sockets.h); -1: it
 * is none, or was closed.
 */
int outboard_socket_descriptor(zval *value)
{
	static const char name[] = "Socket";
	zend_object *object = Z_OBJ_P(value);
	if (!zend_string_equals_cstr(object->ce->name, name, sizeof(name) - 1)
		|| object->ce->type != ZEND_INTERNAL_CLASS) {
		return -1;
	}
	return *(const int *) ((const char *) object - object->handlers->offset);
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_tls_stream, 0, 0, 2)
	ZEND_ARG_TYPE_INFO(0, descriptor, IS_LONG, 0)
	ZEND_ARG_INFO(0, context)
ZEND_END_ARG_INFO()

/*
 * A TCP stream on a duplicate of the descriptor; null without the extension openssl, whose transport
 * "tcp" can begin TLS later. A stream that is created without connecting has no socket yet.
 */
PHP_FUNCTION(outboard_swoole_tls_stream)
{
	static const char transport[] = "tcp://127.0.0.1:0";
	zend_long fd;
	zval *context_value;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_LONG(fd)
		Z_PARAM_RESOURCE(context_value)
	ZEND_PARSE_PARAMETERS_END();
	php_stream_context *context = php_stream_context_from_zval(context_value, false);
	if (!zend_hash_str_exists(&module_registry, ZEND_STRL("openssl"))) {
		return;
	}
	php_stream *stream = php_stream_xport_create(transport, sizeof(transport) - 1, 0,
		STREAM_XPORT_CLIENT, NULL, NULL, context, NULL, NULL);
	if (!stream) {
		return;
	}
	const int own = fcntl((int) fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0) {
		php_stream_close(stream);
		return;
	}
	/* The descriptor is non-blocking; php_stream expects a blocking one, which it switches itself. */
	php_netstream_data_t *data = stream->abstract;
	data->socket = own;
	data->is_blocked = false;
	php_stream_set_option(stream, PHP_STREAM_OPTION_BLOCKING, 1, NULL);
	php_stream_to_zval(stream, return_value);
}

const zend_function_entry outboard_swoole_socket_functions[] = {
	ZEND_NS_FENTRY("Outboard\\Engine\\Swoole", tls_stream, ZEND_FN(outboard_swoole_tls_stream),
		arginfo_tls_stream, 0)
	PHP_FE_END
};
