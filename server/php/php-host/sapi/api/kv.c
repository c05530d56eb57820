/*
 * The C part of Outboard\KV (runtime/kv.php): encoding and decoding of reads, and autoloading in
 * classic mode, where the runtime is not loaded at start. Outboard\RateLimit is loaded in the same way.
 */
#include "api/api.h"
#include "runtime.h"

/* The counterpart is the gateway's entities/batch.rs. */
#define READS 1
#define NO_RECORD UINT32_MAX

static zend_class_entry *(*autoload_next)(zend_string *name, zend_string *lc_name);

ZEND_BEGIN_ARG_INFO_EX(arginfo_kv, 0, 0, 0)
	ZEND_ARG_VARIADIC_INFO(0, arguments)
ZEND_END_ARG_INFO()

static void write_u32(char *to, uint32_t number)
{
	for (int at = 0; at < 4; at++) {
		to[at] = (char) (number >> (8 * at));
	}
}

static uint32_t read_u32(const char *from)
{
	const unsigned char *bytes = (const unsigned char *) from;
	return bytes[0] | (uint32_t) bytes[1] << 8 | (uint32_t) bytes[2] << 16 | (uint32_t) bytes[3] << 24;
}

/* Encodes a read of the records with these names. */
PHP_FUNCTION(outboard_engine_kv_read_request)
{
	HashTable *ids;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_ARRAY_HT(ids)
	ZEND_PARSE_PARAMETERS_END();
	uint32_t count = zend_hash_num_elements(ids);
	size_t bytes = 0;
	zval *id;
	ZEND_HASH_FOREACH_VAL(ids, id) {
		zend_string *text;
		zend_string *name = zval_try_get_tmp_string(id, &text);
		if (!name) {
			return;
		}
		bytes += ZSTR_LEN(name);
		zend_tmp_string_release(text);
	} ZEND_HASH_FOREACH_END();
	zend_string *encoded = zend_string_alloc(5 + 4 * (size_t) count + bytes, false);
	char *length = ZSTR_VAL(encoded) + 5;
	char *name_at = length + 4 * (size_t) count;
	char *end = ZSTR_VAL(encoded) + ZSTR_LEN(encoded);
	ZSTR_VAL(encoded)[0] = READS;
	write_u32(ZSTR_VAL(encoded) + 1, count);
	ZEND_HASH_FOREACH_VAL(ids, id) {
		zend_string *text;
		zend_string *name = zval_try_get_tmp_string(id, &text);
		/* An object may convert to a different string each time. */
		if (!name || ZSTR_LEN(name) > (size_t) (end - name_at)) {
			zend_tmp_string_release(name ? text : NULL);
			zend_string_efree(encoded);
			return;
		}
		write_u32(length, (uint32_t) ZSTR_LEN(name));
		memcpy(name_at, ZSTR_VAL(name), ZSTR_LEN(name));
		length += 4;
		name_at += ZSTR_LEN(name);
		zend_tmp_string_release(text);
	} ZEND_HASH_FOREACH_END();
	*end = '\0';
	RETURN_STR(encoded);
}

/* Decodes the records of a response, by their names. */
PHP_FUNCTION(outboard_engine_kv_parse_records)
{
	HashTable *ids;
	zend_string *response;
	ZEND_PARSE_PARAMETERS_START(2, 2)
		Z_PARAM_ARRAY_HT(ids)
		Z_PARAM_STR(response)
	ZEND_PARSE_PARAMETERS_END();
	size_t count = zend_hash_num_elements(ids);
	array_init_size(return_value, (uint32_t) count);
	if (ZSTR_LEN(response) < 4 * count) {
		return;
	}
	const char *length = ZSTR_VAL(response);
	const char *value = length + 4 * count;
	size_t left = ZSTR_LEN(response) - 4 * count;
	zval *id;
	ZEND_HASH_FOREACH_VAL(ids, id) {
		uint32_t bytes = read_u32(length);
		length += 4;
		if (bytes == NO_RECORD) {
			continue;
		}
		if (bytes > left) {
			return;
		}
		zval record;
		ZVAL_STRINGL_FAST(&record, value, bytes);
		value += bytes;
		left -= bytes;
		zend_string *text;
		zend_string *name = zval_try_get_tmp_string(id, &text);
		if (!name) {
			zval_ptr_dtor(&record);
			return;
		}
		zend_symtable_update(Z_ARRVAL_P(return_value), name, &record);
		zend_tmp_string_release(text);
	} ZEND_HASH_FOREACH_END();
}

static bool is_of_kv(zend_string *lc_name)
{
	return zend_string_equals_literal(lc_name, "outboard\\kv")
		|| zend_string_equals_literal(lc_name, "outboard\\lock")
		|| zend_string_equals_literal(lc_name, "outboard\\kvexception");
}

static bool is_of_rate_limit(zend_string *lc_name)
{
	return zend_string_equals_literal(lc_name, "outboard\\ratelimit")
		|| zend_string_equals_literal(lc_name, "outboard\\ratelimitresult");
}

/* Declares the classes of a file; NULL if this one is not among them. */
static zend_class_entry *declare(zend_string *lc_name, const unsigned char *code, size_t code_len, char *name)
{
	zend_eval_stringl((const char *) code, code_len, NULL, name);
	return zend_hash_find_ptr(EG(class_table), lc_name);
}

static zend_class_entry *autoload(zend_string *name, zend_string *lc_name)
{
	/* In worker mode the classes exist from the start. */
	if (!outboard_host.events && !zend_hash_exists(EG(class_table), lc_name)) {
		zend_class_entry *declared = NULL;
		if (is_of_kv(lc_name)) {
			declared = declare(lc_name, outboard_kv_php, outboard_kv_php_len, "outboard:kv");
		} else if (is_of_rate_limit(lc_name)) {
			declared = declare(lc_name, outboard_rate_limit_php, outboard_rate_limit_php_len, "outboard:rate_limit");
		}
		if (declared) {
			return declared;
		}
	}
	return autoload_next ? autoload_next(name, lc_name) : NULL;
}

/* Runs before the application's autoloaders. */
void outboard_kv_hook(void)
{
	if (zend_autoload != autoload) {
		autoload_next = zend_autoload;
		zend_autoload = autoload;
	}
}

const zend_function_entry outboard_kv_functions[] = {
	ZEND_NS_FENTRY("Outboard\\Engine", kv_read_request, ZEND_FN(outboard_engine_kv_read_request), arginfo_kv, 0)
	ZEND_NS_FENTRY("Outboard\\Engine", kv_parse_records, ZEND_FN(outboard_engine_kv_parse_records), arginfo_kv, 0)
	PHP_FE_END
};
