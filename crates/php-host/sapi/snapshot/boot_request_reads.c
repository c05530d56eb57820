/*
 * What a script reads of its request before Outboard\snapshot(), with file and line. The gateway gives the
 * workers of a snapshot only requests that agree with it.
 *
 * Called by worker_script.c in a zygote whose script boots, and by boot_request.c. A superglobal is fetched by
 * an opcode of its own (zend_compile_simple_var), which is rare; the one after it says which entry is read.
 * Invariant: after the boot nothing is recorded, and a fetch costs one comparison more.
 */
#include "snapshot/boot_request.h"
#include "worker/worker_mode.h"
#include "SAPI.h"

#define READS_MAX 256
#define NAME_BYTES 160

typedef struct {
	char name[NAME_BYTES];
	zend_string *file;
	uint32_t line;
} request_read;

static bool recording;
static request_read reads[READS_MAX];
static size_t count;
static user_opcode_handler_t next_of[256];

static const zend_uchar fetches[] = {
	ZEND_FETCH_R, ZEND_FETCH_IS, ZEND_FETCH_W, ZEND_FETCH_RW, ZEND_FETCH_FUNC_ARG, ZEND_FETCH_UNSET,
};

/* Of $_SERVER, what no header is; others come from the configuration, or are the same for all requests. */
static const char *const of_request[] = {
	"AUTH_TYPE", "CONTENT_LENGTH", "CONTENT_TYPE", "HTTPS", "PATH_INFO", "PATH_TRANSLATED", "PHP_AUTH_DIGEST",
	"PHP_AUTH_PW", "PHP_AUTH_USER", "PHP_SELF", "QUERY_STRING", "REMOTE_ADDR", "REMOTE_PORT", "REMOTE_USER",
	"REQUEST_ID", "REQUEST_METHOD", "REQUEST_SCHEME", "REQUEST_URI", "SERVER_ADDR", "SERVER_NAME",
	"SERVER_PORT", "SERVER_PROTOCOL",
};

static bool is_of_request(const char *name)
{
	if (strncmp(name, "HTTP_", 5) == 0 || strncmp(name, "SSL_", 4) == 0) {
		return true;
	}
	for (size_t i = 0; i < sizeof(of_request) / sizeof(*of_request); i++) {
		if (strcmp(name, of_request[i]) == 0) {
			return true;
		}
	}
	return false;
}

static bool is_known(const char *name, const zend_string *file)
{
	for (size_t i = 0; i < count; i++) {
		const zend_string *other = reads[i].file;
		bool is_same_file = other == file || (other && file && zend_string_equals(other, file));
		if (is_same_file && strcmp(reads[i].name, name) == 0) {
			return true;
		}
	}
	return false;
}

/* The first read of each name in a file. What exceeds the table counts as all of $_SERVER. */
void outboard_request_reads_add(const char *array, const char *entry)
{
	char name[NAME_BYTES];
	int len = entry ? snprintf(name, sizeof(name), "%s.%s", array, entry) : snprintf(name, sizeof(name), "%s", array);
	if (len < 0 || (size_t) len >= sizeof(name) || count == READS_MAX - 1) {
		snprintf(name, sizeof(name), "_SERVER");
	}
	zend_string *file = zend_get_executed_filename_ex();
	if (count < READS_MAX && !is_known(name, file)) {
		request_read *one = &reads[count++];
		memcpy(one->name, name, sizeof(name));
		one->file = file;
		if (one->file) {
			zend_string_addref(one->file);
		}
		one->line = zend_get_executed_lineno();
	}
}

/* An entry of $_SERVER, or all of it. */
static void add_variable(const char *name)
{
	if (!name) {
		outboard_request_reads_add("_SERVER", NULL);
	} else if (is_of_request(name)) {
		outboard_request_reads_add("_SERVER", name);
	}
}

/* A read of any entry of a query or a body counts as one of all. */
static void add(const char *array, const char *entry)
{
	if (strcmp(array, "_SERVER") == 0 || strcmp(array, "_ENV") == 0) {
		add_variable(entry);
	} else {
		outboard_request_reads_add(array, strcmp(array, "_COOKIE") == 0 ? entry : NULL);
	}
}

static const char *superglobal(const zend_string *name)
{
	static const char *const names[] = {"_SERVER", "_GET", "_POST", "_COOKIE", "_FILES", "_REQUEST", "_ENV"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (zend_string_equals_cstr(name, names[i], strlen(names[i]))) {
			return names[i];
		}
	}
	return NULL;
}

static const zval *operand(const zend_execute_data *execute_data, const zend_op *opline, zend_uchar type, znode_op node)
{
	const zval *value = type == IS_CONST ? RT_CONSTANT(opline, node) : EX_VAR(node.var);
	while (Z_TYPE_P(value) == IS_REFERENCE) {
		value = Z_REFVAL_P(value);
	}
	return value;
}

/* Of all entries if its key is no string. */
static void add_entry(const char *array, const zval *key)
{
	add(array, Z_TYPE_P(key) == IS_STRING ? Z_STRVAL_P(key) : NULL);
}

static bool is_result(zend_uchar type, znode_op node, const zend_op *fetch)
{
	return type == fetch->result_type && node.var == fetch->result.var;
}

static void note(const zend_execute_data *execute_data, const zend_op *fetch, const char *array)
{
	const zend_op *next = fetch + 1;
	bool is_first = is_result(next->op1_type, next->op1, fetch);
	if (next->opcode == ZEND_ARRAY_KEY_EXISTS && is_result(next->op2_type, next->op2, fetch)) {
		add_entry(array, operand(execute_data, next, next->op1_type, next->op1));
		return;
	}
	switch (is_first ? next->opcode : ZEND_NOP) {
	case ZEND_ASSIGN_DIM:
	case ZEND_UNSET_DIM:
		/* Writes, which boot_request.c finds. */
		return;
	case ZEND_FETCH_DIM_R:
	case ZEND_FETCH_DIM_IS:
	case ZEND_FETCH_DIM_W:
	case ZEND_FETCH_DIM_RW:
	case ZEND_FETCH_DIM_FUNC_ARG:
	case ZEND_FETCH_DIM_UNSET:
	case ZEND_ASSIGN_DIM_OP:
	case ZEND_ISSET_ISEMPTY_DIM_OBJ:
		if (next->op2_type != IS_UNUSED) {
			add_entry(array, operand(execute_data, next, next->op2_type, next->op2));
			return;
		}
		break;
	default:
		break;
	}
	add(array, NULL);
}

static int fetch_variable(zend_execute_data *execute_data)
{
	const zend_op *opline = EX(opline);
	if (recording && opline->op1_type == IS_CONST) {
		const char *array = superglobal(Z_STR_P(RT_CONSTANT(opline, opline->op1)));
		if (array) {
			note(execute_data, opline, array);
		}
	}
	user_opcode_handler_t next = next_of[opline->opcode];
	return next ? next(execute_data) : ZEND_USER_OPCODE_DISPATCH;
}

static zif_handler next_getenv;
static zif_handler next_filter_input;
static zif_handler next_filter_has_var;
static zif_handler next_filter_input_array;
static zif_handler next_headers;

static void read_getenv(INTERNAL_FUNCTION_PARAMETERS)
{
	if (recording) {
		const zval *name = ZEND_NUM_ARGS() > 0 ? ZEND_CALL_ARG(execute_data, 1) : NULL;
		add_variable(name && Z_TYPE_P(name) == IS_STRING ? Z_STRVAL_P(name) : NULL);
	}
	next_getenv(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

/* The first argument of filter_input() and the like. */
static void read_input(const zend_execute_data *execute_data, bool is_whole)
{
	static const char *const arrays[] = {"_POST", "_GET", "_COOKIE", NULL, "_ENV", "_SERVER"};
	const zval *source = ZEND_NUM_ARGS() > 0 ? ZEND_CALL_ARG(execute_data, 1) : NULL;
	const zval *name = ZEND_NUM_ARGS() > 1 && !is_whole ? ZEND_CALL_ARG(execute_data, 2) : NULL;
	if (recording && source && Z_TYPE_P(source) == IS_LONG && Z_LVAL_P(source) >= 0 && Z_LVAL_P(source) < 6
		&& arrays[Z_LVAL_P(source)]) {
		add(arrays[Z_LVAL_P(source)], name && Z_TYPE_P(name) == IS_STRING ? Z_STRVAL_P(name) : NULL);
	}
}

static void read_filter_input(INTERNAL_FUNCTION_PARAMETERS)
{
	read_input(execute_data, false);
	next_filter_input(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static void read_filter_has_var(INTERNAL_FUNCTION_PARAMETERS)
{
	read_input(execute_data, false);
	next_filter_has_var(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static void read_filter_input_array(INTERNAL_FUNCTION_PARAMETERS)
{
	read_input(execute_data, true);
	next_filter_input_array(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static void read_headers(INTERNAL_FUNCTION_PARAMETERS)
{
	if (recording) {
		outboard_request_reads_add("_SERVER", NULL);
	}
	next_headers(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

/*
 * Before the script is compiled: compiled scripts name their handlers. Files that OPcache has stored on disk
 * name those of a process without these (zend_system_id.c), so with such files nothing is recorded.
 */
void outboard_request_reads_begin(void)
{
	const char *stored = zend_ini_string("opcache.file_cache", sizeof("opcache.file_cache") - 1, 0);
	if (stored && *stored) {
		outboard_request_reads_add("_SERVER", NULL);
		return;
	}
	for (size_t i = 0; i < sizeof(fetches); i++) {
		next_of[fetches[i]] = zend_get_user_opcode_handler(fetches[i]);
		zend_set_user_opcode_handler(fetches[i], fetch_variable);
	}
	next_getenv = outboard_wrap("getenv", read_getenv);
	next_filter_input = outboard_wrap("filter_input", read_filter_input);
	next_filter_has_var = outboard_wrap("filter_has_var", read_filter_has_var);
	next_filter_input_array = outboard_wrap("filter_input_array", read_filter_input_array);
	next_headers = outboard_wrap("getallheaders", read_headers);
	/* An alias with a handler of its own. */
	outboard_wrap("apache_request_headers", read_headers);
	recording = true;
}

static bool is_below(const zend_string *file, const zval *beginning)
{
	return file && Z_TYPE_P(beginning) == IS_STRING
		&& strncmp(ZSTR_VAL(file), Z_STRVAL_P(beginning), Z_STRLEN_P(beginning)) == 0;
}

/*
 * Whether the code below the snapshot takes care of it: `ignored` has it, or its array; or its name is a key
 * there, and the file's path begins with the value.
 */
static bool is_ignored(const char *name, const zend_string *file, const HashTable *ignored)
{
	zend_string *key;
	const char *dot = strchr(name, '.');
	size_t array_len = dot ? (size_t) (dot - name) : strlen(name);
	zval *one;
	if (!ignored) {
		return false;
	}
	ZEND_HASH_FOREACH_STR_KEY_VAL((HashTable *) ignored, key, one) {
		ZVAL_DEREF(one);
		if (key) {
			if (strcmp(ZSTR_VAL(key), name) == 0 && is_below(file, one)) {
				return true;
			}
		} else if (Z_TYPE_P(one) == IS_STRING
			&& (strcmp(Z_STRVAL_P(one), name) == 0
				|| (Z_STRLEN_P(one) == array_len && strncmp(Z_STRVAL_P(one), name, array_len) == 0))) {
			return true;
		}
	} ZEND_HASH_FOREACH_END();
	return false;
}

/* At the snapshot: reports what was read, except for what is in `ignored` (or NULL). */
void outboard_request_reads_end(const HashTable *ignored)
{
	recording = false;
	for (size_t i = 0; i < count; i++) {
		const request_read *one = &reads[i];
		if (!is_ignored(one->name, one->file, ignored)) {
			outboard_str name = {one->name, strlen(one->name)};
			outboard_str file = {one->file ? ZSTR_VAL(one->file) : "", one->file ? ZSTR_LEN(one->file) : 0};
			outboard_rs_request_read(outboard_events, name, file, one->line);
		}
	}
	count = 0;
}
