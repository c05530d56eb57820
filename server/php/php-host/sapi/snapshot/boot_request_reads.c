/*
 * The reads that a script has made of its request before Outboard\snapshot(), with file and line. The gateway gives the
 * workers of a snapshot only requests that agree with them.
 *
 * Called by the hooks in a zygote whose script boots, and by what notices a read: request_fetches.c the opcodes
 * that name an array, tripwire.c everything else that uses one, request_readers.c functions that read other copies,
 * boot_request.c and request/variables.c. Invariant: after the boot nothing is recorded.
 */
#include "snapshot/snapshot.h"

#define READS_MAX 256
#define NAME_BYTES 160

typedef struct {
	char name[NAME_BYTES];
	zend_string *file;
	uint32_t line;
	bool is_of_file; /* or of any: that of an unnoticed read is only where it was found */
	zend_string *caller; /* the nearest that is not in the directory of the file, or NULL */
	uint32_t caller_line;
} request_read;

static request_read reads[READS_MAX];
static size_t count;

/*
 * Of $_SERVER, what no header is; others come from the configuration, or are the same for all requests: the gateway gives
 * a snapshot no request that has another variable (is_recorded() in fact.rs).
 */
static const char *const of_request[] = {
	"AUTH_TYPE", "CONTENT_LENGTH", "CONTENT_TYPE", "HTTPS", "PATH_INFO", "PATH_TRANSLATED", "PHP_AUTH_DIGEST",
	"PHP_AUTH_PW", "PHP_AUTH_USER", "PHP_SELF", "QUERY_STRING", "REMOTE_ADDR", "REMOTE_PORT", "REMOTE_USER",
	"REQUEST_ID", "REQUEST_METHOD", "REQUEST_SCHEME", "REQUEST_URI", "SERVER_ADDR", "SERVER_NAME",
	"SERVER_PORT", "SERVER_PROTOCOL", "argc", "argv",
};

static bool is_of_request(const char *name)
{
	if (strncmp(name, "HTTP_", 5) == 0 || strncmp(name, "SSL_", 4) == 0 || strncmp(name, "OUTBOARD_", 9) == 0) {
		return true;
	}
	for (size_t i = 0; i < sizeof(of_request) / sizeof(*of_request); i++) {
		if (strcmp(name, of_request[i]) == 0) {
			return true;
		}
	}
	return false;
}

static bool is_same(const zend_string *file, const zend_string *other)
{
	return other == file || (other && file && zend_string_equals(other, file));
}

static bool is_known(const char *name, const zend_string *file, const zend_string *caller, bool is_of_file)
{
	for (size_t i = 0; i < count; i++) {
		const request_read *one = &reads[i];
		bool is_same_place = one->is_of_file == is_of_file && is_same(one->file, file) && is_same(one->caller, caller);
		if (is_same_place && strcmp(one->name, name) == 0) {
			return true;
		}
	}
	return false;
}

/* The first read of each name in a file. What exceeds the table counts as all of $_SERVER. */
static void record(const char *array, const char *entry, bool is_of_file)
{
	char name[NAME_BYTES];
	if (!outboard_host.records_reads) {
		return;
	}
	OUTBOARD_ASSERT(!outboard_host.is_fork && count <= READS_MAX);
	int len = entry ? snprintf(name, sizeof(name), "%s.%s", array, entry) : snprintf(name, sizeof(name), "%s", array);
	if (len < 0 || (size_t) len >= sizeof(name) || count == READS_MAX - 1) {
		snprintf(name, sizeof(name), "_SERVER");
		is_of_file = false;
	}
	zend_string *file = zend_get_executed_filename_ex();
	uint32_t caller_line = 0;
	zend_string *caller = outboard_caller_outside(file, &caller_line);
	if (count < READS_MAX && !is_known(name, file, caller, is_of_file)) {
		request_read *one = &reads[count++];
		memcpy(one->name, name, sizeof(name));
		one->file = file;
		if (one->file) {
			zend_string_addref(one->file);
		}
		one->line = zend_get_executed_lineno();
		one->is_of_file = is_of_file;
		one->caller = caller ? zend_string_copy(caller) : NULL;
		one->caller_line = caller_line;
	}
}

void outboard_request_reads_add(const char *array, const char *entry)
{
	record(array, entry, true);
}

/* Of which nothing is known but that something has read the array: no file answers for it. */
void outboard_request_reads_add_unnoticed(const char *array)
{
	record(array, NULL, false);
}

/* An entry of $_SERVER, or all of it. */
void outboard_request_reads_add_variable(const char *name)
{
	if (!name) {
		outboard_request_reads_add("_SERVER", NULL);
	} else if (outboard_host.records_reads && is_of_request(name)) {
		outboard_request_reads_add("_SERVER", name);
	}
}

/* A read of any entry of a query or a body counts as one of all. */
void outboard_request_reads_add_entry(const char *array, const char *entry)
{
	if (strcmp(array, "_SERVER") == 0 || strcmp(array, "_ENV") == 0) {
		outboard_request_reads_add_variable(entry);
	} else {
		outboard_request_reads_add(array, strcmp(array, "_COOKIE") == 0 ? entry : NULL);
	}
}

/* Before the script is compiled: compiled scripts name their handlers. */
void outboard_request_reads_start(const outboard_start *start)
{
	const bool has_tripwire = start->boot_request != NULL;
	if (!outboard_rs_is_forking(outboard_host.events)) {
		return;
	}
	outboard_host.records_reads = true;
	outboard_request_fetches_begin();
	if (has_tripwire && php_ini_has_per_host_config()) {
		/* user_ini.c has set what is for this host. */
		outboard_request_reads_add("_SERVER", "SERVER_NAME");
	}
	if (has_tripwire && !outboard_tripwire_begin()) {
		outboard_request_reads_add_unnoticed("_SERVER");
	}
}

static bool is_below(const zend_string *file, const zval *beginning)
{
	return file && Z_TYPE_P(beginning) == IS_STRING
		&& strncmp(ZSTR_VAL(file), Z_STRVAL_P(beginning), Z_STRLEN_P(beginning)) == 0;
}

/* A list: the beginning of the file's path, and the callers for which it reads. */
static bool is_for_caller(request_read *one, HashTable *list)
{
	zend_ulong at;
	zval *caller;
	const zval *beginning = zend_hash_index_find(list, 0);
	if (!beginning || !is_below(one->file, beginning)) {
		return false;
	}
	ZEND_HASH_FOREACH_NUM_KEY_VAL(list, at, caller) {
		if (at > 0 && one->caller && Z_TYPE_P(caller) == IS_STRING && zend_string_equals(one->caller, Z_STR_P(caller))) {
			return true;
		}
	} ZEND_HASH_FOREACH_END();
	/* The place to be reported is the caller's. */
	if (one->caller) {
		one->file = one->caller;
		one->line = one->caller_line;
	}
	return false;
}

/*
 * Whether the code below the snapshot takes care of it: `ignored` has it, or its array; or its name is a key
 * there, and the file's path begins with the value, or the value is a list for such a file and its caller.
 */
static bool is_ignored(request_read *read, const HashTable *ignored)
{
	const char *name = read->name;
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
			if (strcmp(ZSTR_VAL(key), name) == 0 && read->is_of_file) {
				return Z_TYPE_P(one) == IS_ARRAY ? is_for_caller(read, Z_ARRVAL_P(one)) : is_below(read->file, one);
			}
		} else if (Z_TYPE_P(one) == IS_STRING
			&& (strcmp(Z_STRVAL_P(one), name) == 0
				|| (Z_STRLEN_P(one) == array_len && strncmp(Z_STRVAL_P(one), name, array_len) == 0))) {
			return true;
		}
	} ZEND_HASH_FOREACH_END();
	return false;
}

static const zval *imported(const char *array)
{
	static const struct {
		const char *name;
		int at;
	} tracked[] = {
		{"_SERVER", TRACK_VARS_SERVER}, {"_GET", TRACK_VARS_GET}, {"_POST", TRACK_VARS_POST},
		{"_COOKIE", TRACK_VARS_COOKIE}, {"_FILES", TRACK_VARS_FILES},
	};
	for (size_t i = 0; i < sizeof(tracked) / sizeof(*tracked); i++) {
		if (strncmp(array, tracked[i].name, strlen(tracked[i].name)) == 0
			&& Z_TYPE(PG(http_globals)[tracked[i].at]) == IS_ARRAY) {
			return &PG(http_globals)[tracked[i].at];
		}
	}
	return NULL;
}

/* What the boot has read, with the value of an entry or the number of entries; NULL unless it is to be verified. */
static zval *verified;

static void value_of(const request_read *read, zval *value)
{
	const zval *array = imported(read->name);
	const char *dot = strchr(read->name, '.');
	const zval *entry = array && dot ? zend_symtable_str_find(Z_ARRVAL_P(array), dot + 1, strlen(dot + 1)) : NULL;
	ZVAL_NULL(value);
	if (entry) {
		ZVAL_COPY(value, entry);
	} else if (array && !dot) {
		ZVAL_LONG(value, zend_hash_num_elements(Z_ARRVAL_P(array)));
	}
}

/*
 * With OUTBOARD_VERIFY_SNAPSHOT, at the beginning of each request: that it agrees with everything that its boot has read.
 * The gateway has compared them; this does it with what PHP has made of the request.
 */
void outboard_request_reads_verify(void)
{
	for (size_t i = 0; verified && i < count; i++) {
		zval now;
		value_of(&reads[i], &now);
		const bool is_imported = imported(reads[i].name) || reads[i].name[1] != 'S';
		if (is_imported && !Z_ISUNDEF(verified[i]) && !zend_is_identical(&verified[i], &now)) {
			fprintf(stderr, "the boot of this snapshot has read another %s than this request has\n", reads[i].name);
			abort();
		}
		zval_ptr_dtor(&now);
	}
}

/* A script of the boot forks: what its child reads is not recorded here. */
void outboard_request_reads_note_fork(void)
{
	outboard_request_reads_add_unnoticed("_SERVER");
}

/* At the snapshot: reports what was read, except for what is in `ignored` (or NULL). */
void outboard_request_reads_end(const HashTable *ignored)
{
	if (!outboard_host.records_reads) {
		return;
	}
	outboard_host.records_reads = false;
	verified = getenv("OUTBOARD_VERIFY_SNAPSHOT") ? pecalloc(READS_MAX, sizeof(*verified), 1) : NULL;
	for (size_t i = 0; i < count; i++) {
		request_read *one = &reads[i];
		if (!is_ignored(one, ignored)) {
			if (verified) {
				value_of(one, &verified[i]);
			}
			outboard_str name = {one->name, strlen(one->name)};
			outboard_str file = {one->file ? ZSTR_VAL(one->file) : "", one->file ? ZSTR_LEN(one->file) : 0};
			outboard_rs_request_read(outboard_host.events, name, file, one->line);
		}
	}
}

/* At the first call for a request, which ignores none. */
void outboard_request_reads_end_all(void)
{
	outboard_request_reads_end(NULL);
}
