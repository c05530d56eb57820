/*
 * What notices each read of the request that nothing else has noticed while a script of classic mode boots: the arrays
 * that have the request are behind memory that cannot be accessed. In the place of each one (in the symbol table and in
 * PG(http_globals)) is a decoy, whose zend_array lies in such a page. Code that uses it in any way, be it an opcode,
 * code of the JIT, an internal function or an extension, faults; the handler of the signal records a read of the whole
 * array and replaces the decoy by a copy of it, so that the code continues. An opcode that boot_request_reads.c knows
 * gets the array itself (outboard_tripwire_variable), and the decoy stays.
 *
 * Called by boot_request_reads.c. Invariant: from outboard_tripwire_begin() to outboard_tripwire_end() a variable of
 * the request is read by an opcode that has recorded it, or the whole variable is recorded.
 */
#include "snapshot/snapshot.h"
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

/* One variable, in one of its places. */
typedef struct {
	const char *name; /* in the symbol table, unless `tracked` has the place */
	int tracked;      /* in PG(http_globals), or NO */
	const char *read; /* what a read of it is */
	bool is_array;
	bool has_tripped;
	zval real; /* UNDEF if there is no decoy in its place */
} guard;

#define NO (-1)
#define VARIABLE(of) {.name = of, .tracked = NO, .read = of, .is_array = true}
#define TRACKED(of, index) {.name = of, .tracked = index, .read = of, .is_array = true}

static guard guards[] = {
	VARIABLE("_SERVER"), VARIABLE("_GET"), VARIABLE("_POST"), VARIABLE("_COOKIE"), VARIABLE("_FILES"),
	VARIABLE("_REQUEST"), VARIABLE("_ENV"),
	TRACKED("_SERVER", TRACK_VARS_SERVER), TRACKED("_GET", TRACK_VARS_GET), TRACKED("_POST", TRACK_VARS_POST),
	TRACKED("_COOKIE", TRACK_VARS_COOKIE), TRACKED("_FILES", TRACK_VARS_FILES), TRACKED("_ENV", TRACK_VARS_ENV),
	/* register_argc_argv has the query in them. An integer is behind the page by an indirect entry. */
	{.name = "argv", .tracked = NO, .read = "_GET"}, {.name = "argc", .tracked = NO, .read = "_GET"},
};
#define GUARDS (sizeof(guards) / sizeof(*guards))
#define VARIABLES 7 /* the first ones */

typedef union {
	zend_array array;
	zval value;
} decoy;

static char *pages; /* one for each guard; NULL without a tripwire */
static size_t page_bytes;
static struct sigaction next_action;
static bool (*import_next[VARIABLES])(zend_string *name);

static decoy *decoy_of(const guard *one)
{
	OUTBOARD_ASSERT(pages && one >= guards && one < guards + GUARDS);
	return (decoy *) (pages + page_bytes * (size_t) (one - guards));
}

static zval *place_of(const guard *one)
{
	return one->tracked != NO ? &PG(http_globals)[one->tracked]
		: zend_hash_str_find(&EG(symbol_table), one->name, strlen(one->name));
}

static bool has_decoy(const zval *place, const guard *one)
{
	return one->is_array ? Z_TYPE_P(place) == IS_ARRAY && (decoy *) Z_ARR_P(place) == decoy_of(one)
		: Z_TYPE_P(place) == IS_INDIRECT && (decoy *) Z_INDIRECT_P(place) == decoy_of(one);
}

/* A decoy is in each place that has a variable; until outboard_tripwire_end() there are no other variables. */
static void arm(void)
{
	for (guard *one = guards; one < guards + GUARDS; one++) {
		zval *place = one->has_tripped ? NULL : place_of(one);
		if (!place || !Z_ISUNDEF(one->real) || Z_TYPE_P(place) == IS_INDIRECT
			|| (one->is_array && Z_TYPE_P(place) != IS_ARRAY)) {
			continue;
		}
		ZVAL_COPY_VALUE(&one->real, place);
		if (one->is_array) {
			ZVAL_ARR(place, &decoy_of(one)->array);
		} else {
			ZVAL_INDIRECT(place, &decoy_of(one)->value);
		}
		mprotect(decoy_of(one), page_bytes, PROT_NONE);
	}
}

/* The variables are in their places. A reference that was made unnoticed, or another value, counts as a read. */
static void disarm(void)
{
	for (guard *one = guards; one < guards + GUARDS; one++) {
		if (Z_ISUNDEF(one->real)) {
			continue;
		}
		zval *place = place_of(one);
		if (place && Z_ISREF_P(place)) {
			outboard_request_reads_add_unnoticed(one->read);
			ZVAL_DEREF(place);
			zval *real = &one->real;
			ZVAL_DEREF(real);
			if (has_decoy(place, one)) {
				ZVAL_COPY(place, real);
			}
		} else if (place && has_decoy(place, one)) {
			ZVAL_COPY_VALUE(place, &one->real);
		} else {
			outboard_request_reads_add_unnoticed("_SERVER");
		}
		ZVAL_UNDEF(&one->real);
		mprotect(decoy_of(one), page_bytes, PROT_READ | PROT_WRITE);
	}
}

/*
 * In the handler of the signal, which an instruction outside of the allocator has caused. The array that the decoy
 * becomes belongs to this file as well, so that it is never freed, and is copied before it is written.
 */
static void trip(guard *one)
{
	decoy *now = decoy_of(one);
	zval *real = &one->real;
	OUTBOARD_ASSERT(!one->has_tripped && !Z_ISUNDEF(one->real));
	mprotect(now, page_bytes, PROT_READ | PROT_WRITE);
	outboard_request_reads_add_unnoticed(one->read);
	one->has_tripped = true;
	if (Z_ISREF_P(real)) {
		/* The boot has another name for the variable, which is apart from it from now on. */
		outboard_request_reads_add_unnoticed("_SERVER");
		ZVAL_DEREF(real);
	}
	if (!one->is_array) {
		ZVAL_COPY_VALUE(&now->value, real);
	} else {
		zend_array *copy = zend_array_dup(Z_TYPE_P(real) == IS_ARRAY ? Z_ARR_P(real) : (zend_array *) &zend_empty_array);
		if (Z_TYPE_P(real) != IS_ARRAY) {
			outboard_request_reads_add_unnoticed("_SERVER");
		}
		now->array = *copy;
		FREE_HASHTABLE(copy);
		GC_SET_REFCOUNT(&now->array, 2);
		GC_ADD_FLAGS(&now->array, GC_NOT_COLLECTABLE);
	}
	ZVAL_UNDEF(&one->real);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	const size_t at = (size_t) ((char *) info->si_addr - pages);
	guard *one = guards + at / page_bytes;
	(void) context;
	if (info->si_code == SEGV_ACCERR && at < page_bytes * GUARDS && !Z_ISUNDEF(one->real)) {
		const int error = errno;
		trip(one);
		errno = error;
		return;
	}
	/* The instruction faults again, unless a process has sent the signal. */
	sigaction(SIGSEGV, &next_action, NULL);
	if (info->si_code <= 0) {
		raise(number);
	}
}

/* With auto_globals_jit some are imported when code is compiled that mentions them; they read the others. */
static bool import(zend_string *name)
{
	size_t i = 0;
	while (i + 1 < VARIABLES && !zend_string_equals_cstr(name, guards[i].name, strlen(guards[i].name))) {
		i++;
	}
	disarm();
	const bool armed = import_next[i](name);
	arm();
	return armed;
}

static zend_auto_global *auto_global(size_t i)
{
	zend_auto_global *found = zend_hash_str_find_ptr(CG(auto_globals), guards[i].name, strlen(guards[i].name));
	OUTBOARD_ASSERT(found);
	return found;
}

/* After the superglobals of the boot are imported; false if the system does not permit it. */
bool outboard_tripwire_begin(void)
{
	page_bytes = (size_t) sysconf(_SC_PAGESIZE);
	OUTBOARD_ASSERT(!pages && page_bytes >= sizeof(decoy));
	void *memory = mmap(NULL, page_bytes * GUARDS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
	if (memory == MAP_FAILED || sigaction(SIGSEGV, &action, &next_action) != 0) {
		return false;
	}
	pages = memory;
	for (size_t i = 0; i < VARIABLES; i++) {
		import_next[i] = auto_global(i)->auto_global_callback;
		if (import_next[i]) {
			auto_global(i)->auto_global_callback = import;
		}
	}
	arm();
	return true;
}

/* At the snapshot, or at the end of a script without one. */
void outboard_tripwire_end(void)
{
	bool has_tripped = false;
	if (!pages) {
		return;
	}
	disarm();
	for (guard *one = guards; one < guards + GUARDS; one++) {
		zval *place = one->is_array || !one->has_tripped ? NULL : place_of(one);
		if (place && has_decoy(place, one)) {
			ZVAL_COPY_VALUE(place, &decoy_of(one)->value);
		}
		has_tripped |= one->has_tripped;
	}
	for (size_t i = 0; i < VARIABLES; i++) {
		auto_global(i)->auto_global_callback = import_next[i];
	}
	sigaction(SIGSEGV, &next_action, NULL);
	if (!has_tripped) {
		munmap(pages, page_bytes * GUARDS);
	}
	pages = NULL;
}

/* The superglobal with this name behind its decoy, for an opcode whose read is recorded; NULL if it has none. */
zval *outboard_tripwire_variable(const char *name)
{
	for (size_t i = 0; pages && i < VARIABLES; i++) {
		if (strcmp(guards[i].name, name) == 0) {
			return Z_ISUNDEF(guards[i].real) ? NULL : &guards[i].real;
		}
	}
	return NULL;
}
