/*
 * A script of classic mode that calls Outboard\snapshot(): the request that it sees while it boots, and what
 * it has changed of that request, which every later request gets as well.
 *
 * Called before the boot (hooks.h), and by snapshot_call.c at the snapshot and at the start of each request.
 * Invariants: what the boot has left in superglobals and headers is in each request as if the script had run
 * from its start; a boot that has answered its request, or has a session, takes no snapshot.
 */
#include "snapshot/snapshot.h"
#include "SAPI.h"
#include "ext/session/php_session.h"

#define ARRAYS 7

static const char *const names[ARRAYS] = {"_GET", "_POST", "_COOKIE", "_FILES", "_SERVER", "_ENV", "_REQUEST"};

/* The array as it was imported, which a script does not write: it is shared with the symbol table. The last
 * one has no copy there; without a query and a body it is empty. */
static const int tracked[ARRAYS] = {
	TRACK_VARS_GET, TRACK_VARS_POST, TRACK_VARS_COOKIE, TRACK_VARS_FILES, TRACK_VARS_SERVER, TRACK_VARS_ENV, -1,
};

static const outboard_request *boot_request;
static zval changed[ARRAYS]; /* entries that the boot has set, or UNDEF */
static zval removed[ARRAYS]; /* keys of those that it has removed, or UNDEF */
static zend_llist headers;
static int status;

/* Before php_request_startup. */
void outboard_boot_request_describe(const outboard_start *start)
{
	boot_request = start->boot_request;
	outboard_host.boots_classic = boot_request != NULL;
	if (boot_request) {
		outboard_now.request = boot_request;
		outboard_describe_request(boot_request);
	}
}

/* After php_request_startup: sapi_activate reads cookies only of a request with a server context. */
void outboard_boot_request_import_cookies(const outboard_start *start)
{
	(void) start;
	zend_auto_global *cookies = zend_hash_str_find_ptr(CG(auto_globals), ZEND_STRL("_COOKIE"));
	if (boot_request && cookies) {
		SG(request_info).cookie_data = outboard_read_cookies();
		cookies->auto_global_callback(cookies->name);
	}
}

static void add_change(zval *target, zend_string *key, zend_ulong index, zval *value)
{
	if (Z_ISUNDEF_P(target)) {
		array_init(target);
	}
	if (value) {
		Z_TRY_ADDREF_P(value);
		key ? zend_hash_update(Z_ARRVAL_P(target), key, value)
			: zend_hash_index_update(Z_ARRVAL_P(target), index, value);
	} else if (key) {
		add_next_index_str(target, zend_string_copy(key));
	} else {
		add_next_index_long(target, (zend_long) index);
	}
}

static zval *find(const HashTable *array, zend_string *key, zend_ulong index)
{
	return key ? zend_hash_find(array, key) : zend_hash_index_find(array, index);
}

static void compare(int i, HashTable *before, HashTable *after)
{
	zend_string *key;
	zend_ulong index;
	zval *value;
	ZEND_HASH_FOREACH_KEY_VAL(after, index, key, value) {
		ZVAL_DEREF(value);
		zval *old = find(before, key, index);
		if (!old || !zend_is_identical(old, value)) {
			add_change(&changed[i], key, index, value);
		}
	} ZEND_HASH_FOREACH_END();
	ZEND_HASH_FOREACH_KEY_VAL(before, index, key, value) {
		if (!find(after, key, index)) {
			add_change(&removed[i], key, index, NULL);
		}
	} ZEND_HASH_FOREACH_END();
}

/* Without `E` in variables_order $_ENV has nothing of a request, and is as the boot has left it. */
static bool is_of_request(int i)
{
	return strcmp(names[i], "_ENV") != 0 || strpbrk(PG(variables_order), "eE");
}

static void record_changes(void)
{
	for (int i = 0; i < ARRAYS; i++) {
		if (!is_of_request(i)) {
			continue;
		}
		zval *now = zend_hash_str_find_deref(&EG(symbol_table), names[i], strlen(names[i]));
		const zval *imported = tracked[i] < 0 ? NULL : &PG(http_globals)[tracked[i]];
		const HashTable *before = imported && Z_TYPE_P(imported) == IS_ARRAY ? Z_ARR_P(imported) : &zend_empty_array;
		if (now && Z_TYPE_P(now) == IS_ARRAY && Z_ARR_P(now) != before) {
			compare(i, (HashTable *) before, Z_ARR_P(now));
		}
	}
}

static bool is_named(const sapi_header_struct *header, const char *name, size_t len)
{
	return header->header_len > len && strncasecmp(header->header, name, len) == 0 && header->header[len] == ':';
}

/* Of all that the boot has set: whether it may be in every response. */
static bool has_cookie(void)
{
	zend_llist_position at;
	sapi_header_struct *header = zend_llist_get_first_ex(&SG(sapi_headers).headers, &at);
	for (; header; header = zend_llist_get_next_ex(&SG(sapi_headers).headers, &at)) {
		if (is_named(header, "Set-Cookie", 10)) {
			return true;
		}
	}
	return false;
}

/* The buffer of the ini files may be there, as it is in each request (begin_output in request_start.c). */
static bool has_output(void)
{
	zval length;
	const char *handler = OUTBOARD_OUTPUT_HANDLER();
	int usual = PG(output_buffering) || (handler && *handler) ? 1 : 0;
	int level = php_output_get_level();
	if ((OG(flags) & PHP_OUTPUT_SENT) || level > usual) {
		return true;
	}
	return level == 1 && php_output_get_length(&length) == SUCCESS && Z_LVAL(length) > 0;
}

/*
 * At the snapshot. Returns why there is none: each later request would begin with what belongs to the
 * response of this one.
 */
const char *outboard_boot_request_end(void)
{
	if (!boot_request) {
		return NULL;
	}
	if (has_output()) {
		return "the script has printed something, or has started an output buffer, before Outboard\\snapshot()";
	}
	if (has_cookie()) {
		return "the script has set a cookie before Outboard\\snapshot(), which all clients would get";
	}
	if (PS(session_status) == php_session_active) {
		return "the script has started a session before Outboard\\snapshot()";
	}
	if (SG(request_info).request_body) {
		outboard_request_reads_add("_POST", NULL);
	}
	record_changes();
	/* The boot's own list is never freed. */
	headers = SG(sapi_headers).headers;
	status = SG(sapi_headers).http_response_code;
	outboard_now.request = NULL;
	return NULL;
}

static void apply_to(zval *target, int i)
{
	zend_string *key;
	zend_ulong index;
	zval *value;
	SEPARATE_ARRAY(target);
	if (!Z_ISUNDEF(changed[i])) {
		ZEND_HASH_FOREACH_KEY_VAL(Z_ARRVAL(changed[i]), index, key, value) {
			add_change(target, key, index, value);
		} ZEND_HASH_FOREACH_END();
	}
	if (!Z_ISUNDEF(removed[i])) {
		ZEND_HASH_FOREACH_VAL(Z_ARRVAL(removed[i]), value) {
			Z_TYPE_P(value) == IS_STRING ? zend_hash_del(Z_ARRVAL_P(target), Z_STR_P(value))
				: zend_hash_index_del(Z_ARRVAL_P(target), (zend_ulong) Z_LVAL_P(value));
		} ZEND_HASH_FOREACH_END();
	}
}

/* superglobals.c leaves out $_ENV, which the requests of a worker script share. */
static void import_environment(void)
{
	zend_auto_global *environment = zend_hash_str_find_ptr(CG(auto_globals), ZEND_STRL("_ENV"));
	OUTBOARD_ASSERT(environment);
	if (strpbrk(PG(variables_order), "eE") && zend_hash_str_exists(&EG(symbol_table), ZEND_STRL("_ENV"))) {
		environment->auto_global_callback(environment->name);
	}
}

/* At the start of a request, once its superglobals are imported. */
void outboard_boot_request_apply(void)
{
	OUTBOARD_ASSERT(outboard_host.is_fork);
	if (!boot_request) {
		return;
	}
	outboard_request_reads_verify();
	import_environment();
	for (int i = 0; i < ARRAYS; i++) {
		zval *target = zend_hash_str_find_deref(&EG(symbol_table), names[i], strlen(names[i]));
		bool has_changes = !Z_ISUNDEF(changed[i]) || !Z_ISUNDEF(removed[i]);
		if (has_changes && target && Z_TYPE_P(target) == IS_ARRAY) {
			apply_to(target, i);
		}
	}
	/* X-Powered-By, which the boot may have removed. */
	zend_llist_clean(&SG(sapi_headers).headers);
	zend_llist_position at;
	sapi_header_struct *header = zend_llist_get_first_ex(&headers, &at);
	for (; header; header = zend_llist_get_next_ex(&headers, &at)) {
		sapi_header_line line = {.line = header->header, .line_len = header->header_len};
		sapi_header_op(SAPI_HEADER_ADD, &line);
	}
	SG(sapi_headers).http_response_code = status;
}
