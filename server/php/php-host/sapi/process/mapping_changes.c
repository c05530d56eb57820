/*
 * Changes of mappings by hand: replacements for the functions of the C library with which a request maps memory,
 * takes memory away that the boot had, puts other memory in its place or protects it otherwise. The total size of
 * the address space, which a rewind looks at after each request, need not tell; and what is known to be new is
 * unmapped without a look at all mappings.
 *
 * Exported for PHP and its extensions (build.rs); read by rewind/process_state.rs. What the C library maps itself
 * (threads, libraries) is added to the rest, so that the size tells. Invariants: after the mark every such change
 * is noted, until the rewind puts the notes back with all other memory; one that is new was never the boot's.
 */
#include "process/process.h"

#ifndef __SANITIZE_ADDRESS__

#include "interpose.h"
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/shm.h>

#define NOTES 64
#define PAGE_BYTES 4096

static bool is_noting;
static outboard_mapping_change notes[NOTES];
static size_t count;

/* Whole pages, as the kernel takes them. */
static outboard_mapping_change change_of(const void *address, size_t bytes)
{
	const uintptr_t start = (uintptr_t) address;
	const uintptr_t end = start + ((bytes + PAGE_BYTES - 1) & ~(size_t) (PAGE_BYTES - 1));
	return (outboard_mapping_change) {.start = start, .end = end};
}

static void add(outboard_mapping_change change)
{
	OUTBOARD_ASSERT(count <= NOTES && change.start <= change.end);
	if (!is_noting || change.start == change.end) {
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
	last->is_writable |= change.is_writable;
	last->is_new = false;
}

static void note(const void *address, size_t bytes, bool is_writable)
{
	outboard_mapping_change change = change_of(address, bytes);
	change.is_writable = is_writable;
	add(change);
}

static void note_new(const void *address, size_t bytes)
{
	outboard_mapping_change change = change_of(address, bytes);
	change.is_new = true;
	if (address != MAP_FAILED) {
		add(change);
	}
}

/* The allocator of PHP maps more than it needs, and unmaps both ends. */
static void note_unmapped(const void *address, size_t bytes)
{
	const outboard_mapping_change change = change_of(address, bytes);
	for (size_t i = 0; i < count; i++) {
		outboard_mapping_change *known = &notes[i];
		if (!known->is_new || change.start < known->start || change.end > known->end) {
			continue;
		}
		if (change.start == known->start) {
			known->start = change.end;
		} else if (change.end == known->end) {
			known->end = change.start;
		}
		OUTBOARD_ASSERT(known->start <= known->end);
		if (known->start == known->end) {
			*known = notes[--count];
		}
		return;
	}
	add(change);
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
	note_unmapped(address, bytes);
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
	void *mapped = real(address, bytes, protection, flags, fd, offset);
	if (flags & MAP_FIXED) {
		note(address, bytes, false);
	} else {
		note_new(mapped, bytes);
	}
	return mapped;
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
	if (target) {
		note(target, new_bytes, false);
		return real(address, bytes, new_bytes, flags, target);
	}
	void *mapped = real(address, bytes, new_bytes, flags);
	if (mapped != address) {
		note_new(mapped, new_bytes);
	}
	return mapped;
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
