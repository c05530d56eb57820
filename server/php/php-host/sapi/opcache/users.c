/*
 * Which processes use opcache's shared memory, without system calls. Called by opcache.c.
 *
 * Before opcache resets its memory it waits until no process uses it. It tracks that with a file: a
 * request locks the second byte for reading when it takes a script from the memory, and unlocks all
 * at its end (accel_activate_add, accel_unlock_all in ZendAccelerator.c). These two calls of
 * fcntl(2) take an eighth of the time of a cached one-liner, and all workers contend for one list
 * of locks. Here a process stores its pid in its own slot instead, and a query scans all slots.
 *
 * Invariant: a process that uses the memory is found, one that was killed meanwhile is not.
 * Therefore the owner of a slot holds a lock on the slot's byte of another file for life, which the
 * kernel releases. A process without a slot locks opcache's file as usual.
 */
#include "opcache/opcache.h"
#include "kept.h"
#include "interpose.h"
#include "waiting/waiting.h"
#include "zend_extensions.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS 1024

/* One per cache line, to avoid false sharing. */
struct slot {
	_Alignas(64) _Atomic(pid_t) user;
};

/* Shared with all forks; NULL: opcache's own locks are used. */
static struct slot *slots;
static int claims_fd = -1;
static void *opcache_base;
/* opcache's file, once known. */
static int lock_fd = -1;
/*
 * Whether this process may hold other locks of that file, which opcache releases with the same
 * call.
 */
static OUTBOARD_KEPT bool holds_others = true;

static OUTBOARD_KEPT struct slot *own;
static OUTBOARD_KEPT pid_t own_pid;

static struct flock byte_of(const struct slot *slot)
{
	OUTBOARD_ASSERT(slot >= slots && slot < slots + SLOTS);
	return (struct flock) {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot - slots, .l_len = 1,
	};
}

static bool claim_slot(void)
{
	REAL(fcntl);
	OUTBOARD_ASSERT(!own);
	own_pid = getpid();
	for (int tried = 0; tried < SLOTS; tried++) {
		struct slot *slot = slots + (own_pid + tried) % SLOTS;
		struct flock byte = byte_of(slot);
		if (real(claims_fd, F_SETLK, &byte) == 0) {
			own = slot;
			return true;
		}
	}
	slots = NULL;
	return false;
}

/* The child does not own the slot (fcntl(2): locks are not inherited). */
static void in_child(void)
{
	own = NULL;
	holds_others = true;
}

/* The process that uses the memory by this slot, or 0; clears the slot of a killed one. */
static pid_t user_of(struct slot *slot)
{
	REAL(fcntl);
	pid_t user = atomic_load(&slot->user);
	if (user == 0 || slot == own) {
		return 0;
	}
	struct flock byte = byte_of(slot);
	if (real(claims_fd, F_GETLK, &byte) == 0 && (byte.l_type == F_UNLCK || byte.l_pid != user)) {
		atomic_compare_exchange_strong(&slot->user, &user, 0);
		return 0;
	}
	return user;
}

/* As F_GETLK: a conflicting lock of another process. */
static bool find_user(struct flock *lock)
{
	for (int at = 0; at < SLOTS; at++) {
		pid_t user = user_of(slots + at);
		if (user) {
			lock->l_type = F_RDLCK;
			lock->l_pid = user;
			return true;
		}
	}
	return false;
}

/* The byte that requests lock. */
static bool is_usage(const struct flock *lock)
{
	return lock->l_whence == SEEK_SET && lock->l_start == 1 && lock->l_len == 1;
}

static bool is_everything(const struct flock *lock)
{
	return lock->l_whence == SEEK_SET && lock->l_start == 0 && lock->l_len == 0;
}

/* Whether the call is for opcache's file, which opcache's first call for that byte reveals. */
static bool concerns_opcache(int fd, int command, const struct flock *lock, void *caller)
{
	if (!slots || (command != F_SETLK && command != F_SETLKW && command != F_GETLK)) {
		return false;
	}
	if (lock_fd < 0 && is_usage(lock)) {
		Dl_info from;
		lock_fd = dladdr(caller, &from) && from.dli_fbase == opcache_base ? fd : -1;
	}
	return fd == lock_fd;
}

/* Handles the call if no system call is needed. */
static bool handle_lock(int command, struct flock *lock)
{
	if (command == F_GETLK) {
		return is_usage(lock) && find_user(lock);
	}
	if (lock->l_type != F_UNLCK) {
		if (is_usage(lock) && (own || claim_slot())) {
			/* Visible to all before this process reads whether a reset is in progress. */
			OUTBOARD_ASSERT_SLOWLY(own_pid == getpid());
			atomic_store(&own->user, own_pid);
			return true;
		}
		holds_others = true;
		return false;
	}
	if (own && (is_usage(lock) || is_everything(lock))) {
		atomic_store_explicit(&own->user, 0, memory_order_release);
		bool kernel_knows = holds_others;
		holds_others = holds_others && !is_everything(lock);
		return !kernel_knows;
	}
	return false;
}

int fcntl(int fd, int command, ...)
{
	REAL(fcntl);
	va_list rest;
	va_start(rest, command);
	void *argument = va_arg(rest, void *);
	va_end(rest);
	if (concerns_opcache(fd, command, argument, __builtin_return_address(0))
		&& handle_lock(command, argument)) {
		return 0;
	}
	if (command == F_SETLKW || command == F_OFD_SETLKW) {
		return outboard_lock_range(real, fd, command, argument);
	}
	return real(fd, command, argument);
}

/*
 * After start-up, before the first fork. Without shared memory or a file opcache's locks are used.
 */
void outboard_opcache_users_startup(void)
{
	zend_extension *opcache = zend_get_extension("Zend OPcache");
	Dl_info found;
	if (!opcache || !dladdr((void *) opcache->startup, &found)) {
		return;
	}
	void *shared = mmap(NULL, SLOTS * sizeof(struct slot), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	claims_fd = memfd_create("opcache users", MFD_CLOEXEC);
	if (shared != MAP_FAILED && claims_fd >= 0 && pthread_atfork(NULL, NULL, in_child) == 0) {
		opcache_base = found.dli_fbase;
		slots = shared;
	}
}
