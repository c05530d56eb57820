/*
 * OPcache's clock, ZCG(request_time), which PHP sets at the start of a request (accel_activate in
 * ZendAccelerator.c) and which a worker script has once. With a clock that stands still OPcache compiles a script
 * that was changed after the boot in each request, as if it were just being written (file_update_protection), and
 * never looks at a stored script again (revalidate_freq).
 *
 * Called by hooks: after the start of PHP's request, and for each request. OPcache
 * exports no access: its writable memory is searched for the time of the boot. Invariants: only a variable that
 * is the single one with that value is written; without it stored scripts are looked at each time.
 */
#include "opcache/opcache.h"
#include "SAPI.h"
#include "zend_extensions.h"
#include <link.h>
#include <time.h>

static time_t *variable;

typedef struct {
	uintptr_t code; /* an address in OPcache */
	time_t value;
	size_t hits;
	time_t *hit;
} search;

static void search_segment(search *this, uintptr_t begin, size_t bytes)
{
	uintptr_t at = (begin + sizeof(time_t) - 1) & ~(uintptr_t) (sizeof(time_t) - 1);
	for (; at + sizeof(time_t) <= begin + bytes; at += sizeof(time_t)) {
		if (*(time_t *) at == this->value) {
			this->hits++;
			this->hit = (time_t *) at;
		}
	}
}

static bool has_code(const struct dl_phdr_info *object, uintptr_t code)
{
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		uintptr_t begin = object->dlpi_addr + segment->p_vaddr;
		if (segment->p_type == PT_LOAD && code >= begin && code < begin + segment->p_memsz) {
			return true;
		}
	}
	return false;
}

/* What the loader has made read-only since is read as well. */
static int search_object(struct dl_phdr_info *object, size_t size, void *argument)
{
	search *this = argument;
	(void) size;
	if (!has_code(object, this->code)) {
		return 0;
	}
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W)) {
			search_segment(this, object->dlpi_addr + segment->p_vaddr, segment->p_memsz);
		}
	}
	return 1;
}

static void validate_always(void)
{
	zend_string *name = zend_string_init(ZEND_STRL("opcache.revalidate_freq"), false);
	zend_alter_ini_entry_chars(name, "0", 1, ZEND_INI_SYSTEM, ZEND_INI_STAGE_RUNTIME);
	zend_string_release(name);
}

/* Once, before anything else has the time of this boot. */
void outboard_opcache_clock_find(const outboard_start *start)
{
	(void) start;
	const zend_extension *opcache = zend_get_extension("Zend OPcache");
	if (!opcache || !opcache->startup) {
		return;
	}
	search this = {.code = (uintptr_t) opcache->startup, .value = (time_t) sapi_get_request_time()};
	dl_iterate_phdr(search_object, &this);
	if (this.hits == 1) {
		OUTBOARD_ASSERT(this.hit && ((uintptr_t) this.hit & (sizeof(time_t) - 1)) == 0);
		variable = this.hit;
	} else {
		validate_always();
	}
}

void outboard_opcache_clock_set(const outboard_request *request)
{
	if (variable && request->received_us > 0) {
		*variable = (time_t) (request->received_us / 1000000);
	}
}
