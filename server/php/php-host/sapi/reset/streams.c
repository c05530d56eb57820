/*
 * Stream wrappers, stream filters and the default stream context. Called by reset.c.
 */
#include "reset/reset.h"
#include "ext/standard/basic_functions.h"
#include "ext/standard/file.h"

static zval baseline_context;
static php_stream_notifier baseline_notifier;
static bool has_notifier;
static HashTable baseline_wrappers;
static HashTable baseline_filters;
static HashTable baseline_filter_classes;

static void copy_names(HashTable *to, HashTable *from)
{
	zend_string *name;
	void *value;
	zend_hash_init(to, from ? zend_hash_num_elements(from) : 0, NULL, NULL, true);
	if (from) {
		ZEND_HASH_FOREACH_STR_KEY_PTR(from, name, value) {
			OUTBOARD_ASSERT(name);
			zend_hash_str_add_ptr(to, ZSTR_VAL(name), ZSTR_LEN(name), value);
		} ZEND_HASH_FOREACH_END();
	}
}

/* A key of `present` that `baseline` lacks, or has with another value. */
static zend_string *added_name(HashTable *present, HashTable *baseline)
{
	zend_string *name;
	void *value;
	ZEND_HASH_FOREACH_STR_KEY_PTR(present, name, value) {
		/* unregister_wrapper() has removed the last one. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		if (zend_hash_find_ptr(baseline, name) != value) {
			return zend_string_copy(name);
		}
	} ZEND_HASH_FOREACH_END();
	return NULL;
}

/*
 * A wrapper of a PHP class is a resource that is freed when the wrapper is unregistered
 * (stream_wrapper_unregister in userspace.c). Those of the boot get a reference, to be registered
 * again.
 */
static void retain(const php_stream_wrapper *wrapper)
{
	zval *entry;
	ZEND_HASH_FOREACH_VAL(&EG(regular_list), entry) {
		if (Z_RES_P(entry)->ptr == wrapper) {
			Z_ADDREF_P(entry);
			return;
		}
	} ZEND_HASH_FOREACH_END();
}

/* PHP's own function frees the resource as well, unless it is disabled. */
static void unregister_wrapper(zend_string *name)
{
	zval argument;
	zval result;
	ZVAL_STR(&argument, name);
	outboard_call_if_exists("stream_wrapper_unregister", &argument, &result);
	if (Z_TYPE(result) != IS_TRUE) {
		php_unregister_url_stream_wrapper_volatile(name);
	}
	zval_ptr_dtor(&result);
}

static void save_wrappers(void)
{
	php_stream_wrapper *wrapper;
	copy_names(&baseline_wrappers, php_stream_get_url_stream_wrappers_hash());
	ZEND_HASH_FOREACH_PTR(&baseline_wrappers, wrapper) {
		retain(wrapper);
	} ZEND_HASH_FOREACH_END();
}

static void reset_wrappers(void)
{
	zend_string *name;
	php_stream_wrapper *wrapper;
	while (FG(stream_wrappers) && (name = added_name(FG(stream_wrappers), &baseline_wrappers))) {
		unregister_wrapper(name);
		zend_string_release(name);
	}
	ZEND_HASH_FOREACH_STR_KEY_PTR(&baseline_wrappers, name, wrapper) {
		OUTBOARD_ASSERT(name);
		if (FG(stream_wrappers) && !zend_hash_exists(FG(stream_wrappers), name)) {
			zend_string *copy = zend_string_init(ZSTR_VAL(name), ZSTR_LEN(name), false);
			php_register_url_stream_wrapper_volatile(copy, wrapper);
			retain(wrapper);
			zend_string_release(copy);
		}
	} ZEND_HASH_FOREACH_END();
}

/* PHP stores the class and the factory in two tables (stream_filter_register in user_filters.c). */
static void reset_filters(void)
{
	zend_string *name;
	while (FG(stream_filters) && (name = added_name(FG(stream_filters), &baseline_filters))) {
		zend_hash_del(FG(stream_filters), name);
		zend_string_release(name);
	}
	while (BG(user_filter_map)
		&& (name = added_name(BG(user_filter_map), &baseline_filter_classes))) {
		zend_hash_del(BG(user_filter_map), name);
		zend_string_release(name);
	}
}

static void save_context(void)
{
	php_stream_context *context = FG(default_context);
	ZVAL_UNDEF(&baseline_context);
	if (context) {
		ZVAL_DUP(&baseline_context, &context->options);
	}
	has_notifier = context && context->notifier;
	if (has_notifier) {
		baseline_notifier = *context->notifier;
		OUTBOARD_OWN_NOTIFIER(&baseline_notifier);
	}
}

static void reset_notifier(php_stream_context *context)
{
	if (context->notifier) {
		php_stream_notification_free(context->notifier);
		context->notifier = NULL;
	}
	if (has_notifier) {
		context->notifier = php_stream_notification_alloc();
		*context->notifier = baseline_notifier;
		OUTBOARD_OWN_NOTIFIER(context->notifier);
	}
}

static void reset_context(void)
{
	php_stream_context *context = FG(default_context);
	if (!context) {
		return;
	}
	reset_notifier(context);
	zval_ptr_dtor(&context->options);
	if (Z_ISUNDEF(baseline_context)) {
		array_init(&context->options);
	} else {
		ZVAL_DUP(&context->options, &baseline_context);
	}
}

void outboard_save_streams(void)
{
	save_wrappers();
	copy_names(&baseline_filters, php_get_stream_filters_hash());
	copy_names(&baseline_filter_classes, BG(user_filter_map));
	save_context();
}

void outboard_reset_streams(uint32_t changes)
{
	if (changes & OUTBOARD_WRAPPERS) {
		reset_wrappers();
	}
	if (changes & OUTBOARD_FILTERS) {
		reset_filters();
	}
	if (changes & OUTBOARD_CONTEXT) {
		reset_context();
	}
}
