/*
 * Changes of mappings by hand: replacements for the functions of the C library with which a request can take
 * memory away that the boot had, put other memory in its place or protect it otherwise. The total size of the
 * address space, which a rewind looks at after each request, need not tell.
 *
 * Exported for PHP and its extensions (build.rs); read by rewind/process_state.rs. What the C library maps itself
 * (threads, libraries) is added to the rest, so that the size tells. Invariant: after the mark every such change
 * is noted, until the rewind puts the notes back with all other memory.
 */
#include "shim.h"

#ifndef __SANITIZE_ADDRESS__

#include "interpose.h"
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/shm.h>

#define NOTES 64

static bool is_noting;
static outboard_mapping_change notes[NOTES];
static size_t count;

static void note(const void *address, size_t bytes, bool is_writable)
{
	const uintptr_t start = (uintptr_t) address;
	const outboard_mapping_change change = {start, start + bytes, is_writable};
	if (!is_noting || bytes == 0) {
		return;
	}
	if (count < NOTES) {
		notes[count++] = change;
		return;
	}
	/* The last note covers whatever is too much. */
	outboard_mapping_change *last = &notes[NOTES - 1];
	last->start = change.start < last->start ? change.start : last->start;
	last->end = change.end > last->end ? change.end : last->end;
	last->is_writable |= is_writable;
}

void outboard_mapping_changes_begin(void)
{
	is_noting = true;
	count = 0;
}

const outboard_mapping_change *outboard_mapping_changes(size_t *length)
{
	*length = count;
	return notes;
}

int munmap(void *address, size_t bytes)
{
	REAL(munmap);
	note(address, bytes, false);
	return real(address, bytes);
}

int mprotect(void *address, size_t bytes, int protection)
{
	REAL(mprotect);
	note(address, bytes, (protection & PROT_WRITE) != 0);
	return real(address, bytes, protection);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	REAL(mmap);
	if (flags & MAP_FIXED) {
		note(address, bytes, false);
	}
	return real(address, bytes, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off64_t offset)
{
	return mmap(address, bytes, protection, flags, fd, offset);
}

void *mremap(void *address, size_t bytes, size_t new_bytes, int flags, ...)
{
	REAL(mremap);
	va_list arguments;
	va_start(arguments, flags);
	void *target = flags & MREMAP_FIXED ? va_arg(arguments, void *) : NULL;
	va_end(arguments);
	note(address, bytes, false);
	if (!target) {
		return real(address, bytes, new_bytes, flags);
	}
	note(target, new_bytes, false);
	return real(address, bytes, new_bytes, flags, target);
}

int shmdt(const void *address)
{
	REAL(shmdt);
	/* The kernel knows the size; one byte suffices to meet a mapping of the boot. */
	note(address, 1, false);
	return real(address);
}

#else

void outboard_mapping_changes_begin(void)
{
}

const outboard_mapping_change *outboard_mapping_changes(size_t *length)
{
	*length = 0;
	return NULL;
}

#endif
