/*
 * Objects of Random\Engine that the boot has created without a seed: each request, and each worker, would draw the
 * same numbers from them. So they are seeded anew at the beginning of each request, by their own
 * constructors. An engine with a seed, and one that is unserialized or cloned, is as the boot has left it.
 *
 * Called by the hooks script_start and forked.
 */
#include "snapshot/snapshot.h"
#include "connections/connections.h"

static const char *const classes[] = {
	"random\\engine\\mt19937", "random\\engine\\pcgoneseq128xslrr64", "random\\engine\\xoshiro256starstar",
};
#define CLASSES (sizeof(classes) / sizeof(*classes))

static zend_function *constructors[CLASSES];
static zif_handler originals[CLASSES];

/* Of the boot; they keep a reference, so that a number is not used again. */
static zend_object **engines;
static uint32_t count;

static ZEND_FUNCTION(construct_noted)
{
	size_t at = 0;
	while (at + 1 < CLASSES && execute_data->func != constructors[at]) {
		at++;
	}
	originals[at](INTERNAL_FUNCTION_PARAM_PASSTHRU);
	const bool has_seed = ZEND_NUM_ARGS() > 0 && Z_TYPE_P(ZEND_CALL_ARG(execute_data, 1)) != IS_NULL;
	if (!has_seed && !EG(exception) && outboard_connections_in_boot()) {
		engines = perealloc(engines, (count + 1) * sizeof(*engines), 1);
		engines[count++] = Z_OBJ(execute_data->This);
		GC_ADDREF(Z_OBJ(execute_data->This));
	}
}

void outboard_boot_engines_startup(const outboard_start *start)
{
	(void) start;
	if (!outboard_connections_in_boot()) {
		return;
	}
	for (size_t i = 0; i < CLASSES; i++) {
		const zend_class_entry *class = outboard_class(classes[i]);
		zend_function *constructor = class ? class->constructor : NULL;
		if (constructor && constructor->type == ZEND_INTERNAL_FUNCTION
			&& constructor->internal_function.handler != ZEND_FN(construct_noted)) {
			constructors[i] = constructor;
			originals[i] = constructor->internal_function.handler;
			constructor->internal_function.handler = ZEND_FN(construct_noted);
		}
	}
}

/* At the beginning of each request. */
void outboard_boot_engines_seed(void)
{
	for (uint32_t i = 0; i < count; i++) {
		OUTBOARD_ASSERT(engines[i]->ce->constructor);
		zend_call_known_instance_method_with_0_params(engines[i]->ce->constructor, engines[i], NULL);
	}
}
