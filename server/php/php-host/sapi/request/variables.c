/*
 * $_SERVER and getenv(): the variables that nginx with Debian's fastcgi_params and php-fpm set, in
 * the same order.
 */
#include "request/request.h"
#include "request/filter.h"

#define NAME_MAX_BYTES 256
/* As many as for a typical browser, so that $_SERVER need not grow. */
#define USUAL_VARIABLES 48
#define JOINED_MAX_BYTES 65536

/* In any order: the order in $_SERVER is that of the callbacks below. */
#define NAMES(X) \
	X(REDIRECT_STATUS) X(SERVER_NAME) X(SERVER_PORT) X(SERVER_ADDR) X(REMOTE_USER) \
	X(REMOTE_PORT) X(REMOTE_ADDR) X(SERVER_SOFTWARE) X(GATEWAY_INTERFACE) X(HTTPS) \
	X(REQUEST_SCHEME) X(SERVER_PROTOCOL) X(DOCUMENT_ROOT) X(DOCUMENT_URI) X(REQUEST_URI) \
	X(SCRIPT_NAME) X(CONTENT_LENGTH) X(CONTENT_TYPE) X(REQUEST_METHOD) X(QUERY_STRING) \
	X(SCRIPT_FILENAME) X(PATH_INFO) X(PATH_TRANSLATED) X(REQUEST_ID) X(FCGI_ROLE) X(PHP_SELF) \
	X(OUTBOARD_WORKER) X(FRANKENPHP_WORKER)

#define AS_ENUM(name) NAME_##name,
#define AS_STRING(name) variable_names[NAME_##name] = zend_string_init_interned(#name, strlen(#name), true);
enum { NAMES(AS_ENUM) NAME_COUNT };
static zend_string *variable_names[NAME_COUNT];

/*
 * Cached variable names of headers, by their spelling. Entries are never replaced, so clients
 * cannot make a worker grow.
 */
#define KNOWN_HEADERS 64
static struct known_header {
	zend_string *header;
	zend_string *variable;
} known_headers[KNOWN_HEADERS];

/* Before the engine's start-up ends: names interned then live as long as the process. */
void outboard_variables_startup(void)
{
	NAMES(AS_STRING)
}

static bool same_name(const outboard_str *a, const outboard_str *b)
{
	return a->len == b->len && strncasecmp(a->ptr, b->ptr, a->len) == 0;
}

static bool is_name(const outboard_str *text, const char *lower, size_t len)
{
	return text->len == len && strncasecmp(text->ptr, lower, len) == 0;
}

const outboard_str *outboard_header(const char *name, size_t name_len)
{
	for (size_t i = 0; i < outboard_now.request->header_count; i++) {
		if (is_name(&outboard_now.request->headers[i].name, name, name_len)) {
			return &outboard_now.request->headers[i].value;
		}
	}
	return NULL;
}

/*
 * "X-Real-Ip" becomes "HTTP_X_REAL_IP"; NULL if the header is left out. As in nginx, only letters,
 * digits and hyphens are allowed, because X_Real_Ip would become the same variable and could be
 * forged. `Proxy` is always left out (httpoxy, CVE-2016-5385).
 */
static zend_string *build_variable_name(const outboard_str *header, bool permanent)
{
	char name[NAME_MAX_BYTES + 6] = "HTTP_";
	if (header->len > NAME_MAX_BYTES || is_name(header, "proxy", 5)) {
		return NULL;
	}
	for (size_t i = 0; i < header->len; i++) {
		unsigned char c = (unsigned char) header->ptr[i];
		if (c >= 'a' && c <= 'z') {
			c = (unsigned char) (c - 'a' + 'A');
		} else if (c == '-') {
			c = '_';
		} else if (!((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) {
			return NULL;
		}
		name[5 + i] = (char) c;
	}
	return zend_string_init(name, 5 + header->len, permanent);
}

/* The caller releases it. */
static zend_string *variable_name(const outboard_str *header)
{
	if (header->len == 0 || header->len > NAME_MAX_BYTES) {
		return NULL;
	}
	size_t at = header->len * 7 + (unsigned char) header->ptr[0] * 3
		+ (unsigned char) header->ptr[header->len - 1];
	struct known_header *known = &known_headers[at % KNOWN_HEADERS];
	if (!known->header) {
		known->variable = build_variable_name(header, true);
		known->header = zend_string_init(header->ptr, header->len, true);
		if (known->variable) {
			zend_string_hash_val(known->variable);
			GC_ADD_FLAGS(known->variable, IS_STR_INTERNED | IS_STR_PERMANENT);
		}
		return known->variable;
	}
	if (zend_string_equals_cstr(known->header, header->ptr, header->len)) {
		return known->variable;
	}
	return build_variable_name(header, false);
}

/*
 * Lines of one name become one value (RFC 3875 section 4.1.18), cookies by RFC 9113 section 8.2.3.
 * Lines that do not fit are left out.
 */
static size_t join_lines(size_t first, char *joined)
{
	const outboard_request *request = outboard_now.request;
	const outboard_str *name = &request->headers[first].name;
	const char *separator = is_name(name, "cookie", 6) ? "; " : ", ";
	size_t len = 0;
	for (size_t i = first; i < request->header_count; i++) {
		const outboard_str *value = &request->headers[i].value;
		if (!same_name(&request->headers[i].name, name)
			|| len + value->len + 3 > JOINED_MAX_BYTES) {
			continue;
		}
		if (i != first) {
			memcpy(joined + len, separator, 2);
			len += 2;
		}
		memcpy(joined + len, value->ptr, value->len);
		len += value->len;
	}
	joined[len] = '\0';
	return len;
}

enum repetition { ALONE, FIRST_OF_MANY, REPEATED };

static enum repetition repetition_of(size_t index)
{
	const outboard_request *request = outboard_now.request;
	for (size_t i = 0; i < index; i++) {
		if (same_name(&request->headers[i].name, &request->headers[index].name)) {
			return REPEATED;
		}
	}
	for (size_t i = index + 1; i < request->header_count; i++) {
		if (same_name(&request->headers[i].name, &request->headers[index].name)) {
			return FIRST_OF_MANY;
		}
	}
	return ALONE;
}

void outboard_variables_each_header(outboard_variable_callback callback, void *arg)
{
	const outboard_request *request = outboard_now.request;
	for (size_t i = request->header_count; i-- > 0;) {
		const outboard_pair *header = &request->headers[i];
		zend_string *name = variable_name(&header->name);
		enum repetition repetition = name ? repetition_of(i) : REPEATED;
		if (repetition == ALONE) {
			callback(name, header->value.ptr, header->value.len, arg);
		} else if (repetition == FIRST_OF_MANY) {
			static char joined[JOINED_MAX_BYTES];
			callback(name, joined, join_lines(i, joined), arg);
		}
		if (name) {
			zend_string_release(name);
		}
	}
}

#define EMIT(name, value, value_len) callback(variable_names[NAME_##name], value, value_len, arg)
#define EMIT_TEXT(name, text) EMIT(name, text, sizeof(text) - 1)
#define VISIT_STR(name, field) EMIT(name, request->field.ptr, request->field.len)

/* Port 0 becomes an empty value, as in nginx. */
static size_t print_port(char *text, size_t size, uint16_t port)
{
	text[0] = '\0';
	return port ? (size_t) snprintf(text, size, "%u", (unsigned) port) : 0;
}

/* RFC 3875 section 4.1.6: the path info mapped below the document root. */
static void emit_path_translated(outboard_variable_callback callback, void *arg)
{
	const outboard_request *request = outboard_now.request;
	static char path[PATH_MAX]; /* as in user_ini.c */
	size_t root = request->document_root.len;
	size_t info = request->path_info.len;
	if (info == 0 || root + info >= sizeof(path)) {
		return;
	}
	memcpy(path, request->document_root.ptr, root);
	memcpy(path + root, request->path_info.ptr, info + 1);
	EMIT(PATH_TRANSLATED, path, root + info);
}

static void emit_connection(outboard_variable_callback callback, void *arg)
{
	const outboard_request *request = outboard_now.request;
	char number[24];
	EMIT_TEXT(REDIRECT_STATUS, "200");
	VISIT_STR(SERVER_NAME, server_name);
	EMIT(SERVER_PORT, number, print_port(number, sizeof(number), request->server_port));
	VISIT_STR(SERVER_ADDR, server_addr);
	const char *user = SG(request_info).auth_user;
	EMIT(REMOTE_USER, user ? user : "", user ? strlen(user) : 0);
	EMIT(REMOTE_PORT, number, print_port(number, sizeof(number), request->remote_port));
	VISIT_STR(REMOTE_ADDR, remote_addr);
	/* Applications compare it with known servers: WordPress writes permalinks without index.php only
	 * for Apache and nginx, whose rules apply here. */
	EMIT_TEXT(SERVER_SOFTWARE, "outboard/" OUTBOARD_VERSION " (like nginx)");
	EMIT_TEXT(GATEWAY_INTERFACE, "CGI/1.1");
	if (is_name(&request->scheme, "https", 5)) {
		EMIT_TEXT(HTTPS, "on");
	}
	VISIT_STR(REQUEST_SCHEME, scheme);
	VISIT_STR(SERVER_PROTOCOL, protocol);
}

static void emit_target(outboard_variable_callback callback, void *arg)
{
	const outboard_request *request = outboard_now.request;
	char number[24] = "";
	int digits = 0;
	VISIT_STR(DOCUMENT_ROOT, document_root);
	VISIT_STR(DOCUMENT_URI, document_uri);
	VISIT_STR(REQUEST_URI, uri);
	VISIT_STR(SCRIPT_NAME, script_name);
	if (request->content_length >= 0) {
		digits = snprintf(number, sizeof(number), "%lld", (long long) request->content_length);
	}
	EMIT(CONTENT_LENGTH, number, (size_t) digits);
	VISIT_STR(CONTENT_TYPE, content_type);
	VISIT_STR(REQUEST_METHOD, method);
	VISIT_STR(QUERY_STRING, query);
	VISIT_STR(SCRIPT_FILENAME, script_filename);
	VISIT_STR(PATH_INFO, path_info);
	emit_path_translated(callback, arg);
	VISIT_STR(REQUEST_ID, request_id);
	EMIT_TEXT(FCGI_ROLE, "RESPONDER");
}

/* A later variable replaces an earlier one, so the configuration takes precedence. */
void outboard_variables_each(outboard_variable_callback callback, void *arg)
{
	const outboard_request *request = outboard_now.request;
	outboard_variables_each_header(callback, arg);
	emit_connection(callback, arg);
	emit_target(callback, arg);
	for (size_t i = 0; i < request->param_count; i++) {
		const outboard_pair *param = &request->params[i];
		zend_string *name = zend_string_init(param->name.ptr, param->name.len, false);
		callback(name, param->value.ptr, param->value.len, arg);
		zend_string_release(name);
	}
}

/*
 * As php_register_variable_ex, which parses each name as that of a form field; only names from the
 * configuration could look like one.
 */
static void register_plain(zend_string *name, const char *value, size_t value_len, void *arg)
{
	zval *target = arg;
	zval text;
	if (!ZSTR_IS_INTERNED(name) && strpbrk(ZSTR_VAL(name), " .[")) {
		php_register_variable_safe(ZSTR_VAL(name), value, value_len, target);
		return;
	}
	ZVAL_STRINGL_FAST(&text, value, value_len);
	zend_hash_update(Z_ARRVAL_P(target), name, &text);
}

struct filtered {
	zval *target;
	int source; /* PARSE_SERVER or PARSE_ENV */
};

/* As in php-fpm, if there is a default filter. */
static void register_filtered(zend_string *name, const char *value, size_t value_len, void *arg)
{
	struct filtered *filtered = arg;
	char *text = (char *) value;
	const char *text_name = ZSTR_VAL(name);
	if (sapi_module.input_filter(filtered->source, text_name, &text, value_len, &value_len)) {
		php_register_variable_safe(text_name, text, value_len, filtered->target);
	}
}

static void register_each(zval *target, int source)
{
	if (outboard_filter_changes_input()) {
		struct filtered filtered = {target, source};
		outboard_variables_each(register_filtered, &filtered);
	} else {
		outboard_variables_each(register_plain, target);
	}
}

static void (*import_process_environment)(zval *target);

static const char *document_root = "";

/* For boots: the engine keeps it. */
void outboard_boot_document_root(const char *path)
{
	document_root = path;
}

/* While a worker script boots: of its own file, as in FrankenPHP. */
static void register_script(zval *target)
{
	const char *file = SG(request_info).path_translated;
	const size_t root_len = strlen(document_root);
	const bool is_inside = root_len && strncmp(file, document_root, root_len) == 0 && file[root_len] == '/';
	const char *name = is_inside ? file + root_len : strrchr(file, '/');
	OUTBOARD_ASSERT(name);
	register_plain(variable_names[NAME_DOCUMENT_ROOT], document_root, root_len, target);
	register_plain(variable_names[NAME_SCRIPT_FILENAME], file, strlen(file), target);
	register_plain(variable_names[NAME_SCRIPT_NAME], name, strlen(name), target);
	register_plain(variable_names[NAME_PHP_SELF], name, strlen(name), target);
}

/* Adds the process's environment, then the request's. */
static void add_environment(zval *target)
{
	import_process_environment(target);
	if (outboard_host.events && !outboard_host.boots_classic) {
		register_plain(variable_names[NAME_OUTBOARD_WORKER], "1", 1, target);
		if (outboard_host.has_frankenphp) {
			register_plain(variable_names[NAME_FRANKENPHP_WORKER], "1", 1, target);
		}
	}
	if (!outboard_now.request) {
		return;
	}
	if (Z_ARR_P(target) == Z_ARR(PG(http_globals)[TRACK_VARS_SERVER])) {
		register_each(target, PARSE_SERVER);
	} else if (Z_ARR_P(target) == Z_ARR(PG(http_globals)[TRACK_VARS_ENV])) {
		/* A worker script has one $_ENV for all requests, so it has no fields of a request. */
		if (!outboard_host.events || outboard_host.is_fork || outboard_host.boots_classic) {
			register_each(target, PARSE_ENV);
		}
	} else {
		outboard_variables_each(register_plain, target);
	}
}

/* For $_ENV, and for getenv() without arguments, which reads all. */
static void import_environment(zval *target)
{
	if (Z_ARR_P(target) != Z_ARR(PG(http_globals)[TRACK_VARS_ENV])) {
		OUTBOARD_RUN_HOOKS(variable_read, NULL);
	}
	add_environment(target);
}

void outboard_variables_hook(void)
{
	import_process_environment = php_import_environment_variables;
	php_import_environment_variables = import_environment;
#ifdef OUTBOARD_HAS_LOAD_ENVIRONMENT
	php_load_environment_variables = import_environment;
#endif
}

void outboard_register_server_variables(zval *target)
{
	const outboard_request *request = outboard_now.request;
	zend_hash_extend(Z_ARRVAL_P(target), USUAL_VARIABLES, false);
	add_environment(target);
	if (!request) {
		if (outboard_host.events && !outboard_host.is_program && SG(request_info).path_translated) {
			register_script(target);
		}
		return;
	}
	static char self[PATH_MAX]; /* as in user_ini.c */
	size_t script = request->script_name.len;
	size_t info = request->path_info.len;
	bool filtering = outboard_filter_changes_input();
	if (script + info < sizeof(self)) {
		struct filtered filtered = {target, PARSE_SERVER};
		zend_string *name = variable_names[NAME_PHP_SELF];
		memcpy(self, request->script_name.ptr, script);
		memcpy(self + script, request->path_info.ptr, info + 1);
		if (filtering) {
			register_filtered(name, self, script + info, &filtered);
		} else {
			register_plain(name, self, script + info, target);
		}
	}
	if (!filtering) {
		outboard_filter_set_server(target);
	}
}

struct lookup {
	const char *name;
	size_t name_len;
	char *value;
};

static void match(zend_string *name, const char *value, size_t value_len, void *arg)
{
	struct lookup *lookup = arg;
	if (zend_string_equals_cstr(name, lookup->name, lookup->name_len)) {
		static char found[JOINED_MAX_BYTES];
		size_t len = value_len < sizeof(found) ? value_len : sizeof(found) - 1;
		memcpy(found, value, len);
		found[len] = '\0';
		lookup->value = found;
	}
}

/* The caller copies the value at once (sapi_getenv in SAPI.c). */
char *outboard_getenv(const char *name, size_t name_len)
{
	if (!outboard_now.request) {
		return getenv(name);
	}
	OUTBOARD_RUN_HOOKS(variable_read, name);
	struct lookup lookup = {name, name_len, NULL};
	outboard_variables_each(match, &lookup);
	return lookup.value;
}
