/*
 * Memory that all processes of a program share: that of its tables, atomics and locks.
 *
 * It is mapped before the server starts, so every worker inherits it. Task workers are forked from
 * another process, which has run the same lines: where the server has a folder for it, what is made in
 * the same place of the program is the same file, and lives as long as the server.
 * Invariants: a lock is freed when its owner has gone, however it went; it is held for a few
 * instructions, in which nothing is allocated.
 */
#include "swoole/sapi/swoole.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The number of tries between two checks of whether the owner runs. */
#define TRIES 1000

static unsigned created;

/* getpid(2) is a system call. */
static uint32_t own_pid;

static void forget_pid(void)
{
	own_pid = 0;
}

static uint32_t pid(void)
{
	static bool is_watching;
	if (!own_pid) {
		is_watching = is_watching || pthread_atfork(NULL, NULL, forget_pid) == 0;
		own_pid = (uint32_t) getpid();
	}
	return own_pid;
}

/* A file of the server's folder, or -1. */
static int open_file(size_t size)
{
	char path[PATH_MAX];
	const char *folder = getenv("OUTBOARD_SWOOLE_MEMORY");
	struct stat status;
	if (!folder || snprintf(path, sizeof(path), "%s/%u-%zu", folder, created, size) >= PATH_MAX) {
		return -1;
	}
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		return -1;
	}
	if (fstat(fd, &status) != 0 || ((size_t) status.st_size < size && ftruncate(fd, (off_t) size) != 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

void *outboard_swoole_share(size_t size)
{
	const int fd = outboard_program.is_starting ? -1 : open_file(size);
	const int flags = fd >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
	created++;
	if (fd >= 0) {
		close(fd);
	}
	return memory == MAP_FAILED ? NULL : memory;
}

void outboard_swoole_unshare(void *memory, size_t size)
{
	OUTBOARD_ASSERT(memory && size > 0);
	munmap(memory, size);
}

bool outboard_swoole_try_lock(uint32_t *word)
{
	uint32_t free = 0;
	OUTBOARD_ASSERT(pid() != 0);
	return __atomic_compare_exchange_n(
		word, &free, pid(), false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Whether a process has ended; also one that its parent has not waited for yet (proc_pid_stat(5)). */
bool outboard_swoole_has_ended(uint32_t process)
{
	char path[32];
	char text[512];
	if (kill((pid_t) process, 0) != 0) {
		return errno == ESRCH;
	}
	snprintf(path, sizeof(path), "/proc/%u/stat", process);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return errno == ENOENT;
	}
	const ssize_t len = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len > 0 ? len : 0] = '\0';
	/* The name, in parentheses, may contain any character. */
	const char *state = strrchr(text, ')');
	return state && (strncmp(state, ") Z", 3) == 0 || strncmp(state, ") X", 3) == 0);
}

/* Frees the lock of a process that has ended. */
void outboard_swoole_free_orphan(uint32_t *word)
{
	uint32_t owner = __atomic_load_n(word, __ATOMIC_RELAXED);
	if (owner != 0 && outboard_swoole_has_ended(owner)) {
		__atomic_compare_exchange_n(word, &owner, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	}
}

void outboard_swoole_lock(uint32_t *word)
{
	for (unsigned tries = 1; !outboard_swoole_try_lock(word); tries++) {
		if (tries % TRIES == 0) {
			outboard_swoole_free_orphan(word);
		}
		if (tries > 20) {
			sched_yield();
		}
	}
}

void outboard_swoole_unlock(uint32_t *word)
{
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
}
