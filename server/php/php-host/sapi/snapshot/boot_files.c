/*
 * What the start of a script reads, if workers are forks of it: files, directories, and names that do not
 * exist. src/boot_files.rs keeps the list, by which the gateway learns that the snapshot is out of date.
 *
 * Functions of the C library are replaced, because PHP's streams, its extensions and their libraries all use
 * them. Invariants: nothing is recorded in a worker; a file is recorded before it is read. Files that the
 * engine takes from OPcache are opened by nobody: the list of included files has them.
 */
#undef _FORTIFY_SOURCE
#include "snapshot/snapshot.h"
#include "process/process.h"
#include "interpose.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_recording;

void outboard_boot_files_record(bool record)
{
	is_recording = record;
}

static void record(outboard_boot_use use, const char *path)
{
	if (!path) {
		return;
	}
	OUTBOARD_ASSERT(!outboard_host.is_fork);
	const int error = errno;
	outboard_rs_boot_uses(use, path, strlen(path));
	errno = error;
}

static void record_open(const char *path, int flags)
{
	if (is_recording && !(flags & O_DIRECTORY)) {
		record((flags & O_ACCMODE) == O_RDONLY && !(flags & O_CREAT) ? OUTBOARD_BOOT_READS : OUTBOARD_BOOT_WRITES, path);
	}
}

static mode_t mode_of(int flags, va_list rest)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
}

static outboard_denied_use use_of(int flags)
{
	return (flags & O_ACCMODE) == O_RDONLY && !(flags & O_CREAT) ? OUTBOARD_DENIED_READ : OUTBOARD_DENIED_WRITE;
}

int open(const char *path, int flags, ...)
{
	REAL(open);
	va_list rest;
	va_start(rest, flags);
	const mode_t mode = mode_of(flags, rest);
	va_end(rest);
	record_open(path, flags);
	return OUTBOARD_UNLESS_DENIED(real(path, flags, mode), use_of(flags), path);
}

int open64(const char *path, int flags, ...)
{
	REAL(open64);
	va_list rest;
	va_start(rest, flags);
	const mode_t mode = mode_of(flags, rest);
	va_end(rest);
	record_open(path, flags);
	return OUTBOARD_UNLESS_DENIED(real(path, flags, mode), use_of(flags), path);
}

FILE *fopen(const char *path, const char *mode)
{
	REAL(fopen);
	if (is_recording) {
		record(mode && mode[0] == 'r' && !strchr(mode, '+') ? OUTBOARD_BOOT_READS : OUTBOARD_BOOT_WRITES, path);
	}
	FILE *opened = real(path, mode);
	if (UNEXPECTED(!opened && errno == EACCES)) {
		outboard_denied(mode && mode[0] == 'r' ? OUTBOARD_DENIED_READ : OUTBOARD_DENIED_WRITE, path);
	}
	return opened;
}

DIR *opendir(const char *path)
{
	REAL(opendir);
	if (is_recording) {
		record(OUTBOARD_BOOT_LISTS, path);
	}
	DIR *opened = real(path);
	if (UNEXPECTED(!opened && errno == EACCES)) {
		outboard_denied(OUTBOARD_DENIED_READ, path);
	}
	return opened;
}

/* A name that does not exist. Of those that do, only what is read matters. */
static int missed(const char *path, int result)
{
	if (is_recording && result != 0 && (errno == ENOENT || errno == ENOTDIR)) {
		record(OUTBOARD_BOOT_MISSES, path);
	}
	return result;
}

int access(const char *path, int mode)
{
	REAL(access);
	return missed(path, real(path, mode));
}

int stat(const char *restrict path, struct stat *restrict found)
{
	REAL(stat);
	return missed(path, real(path, found));
}

/* PHP resolves links itself before it opens a file (tsrm_realpath_r in zend_virtual_cwd.c). */
int lstat(const char *restrict path, struct stat *restrict found)
{
	REAL(lstat);
	const int result = real(path, found);
	if (is_recording && result == 0 && S_ISLNK(found->st_mode)) {
		record(OUTBOARD_BOOT_FOLLOWS, path);
	}
	return missed(path, result);
}

/* Before the snapshot, or when the script has ended without one. */
void outboard_boot_files_end(void)
{
	zend_string *path;
	if (!outboard_host.events || !outboard_rs_is_forking(outboard_host.events)) {
		return;
	}
	ZEND_HASH_FOREACH_STR_KEY(&EG(included_files), path) {
		if (path) {
			outboard_rs_boot_uses(OUTBOARD_BOOT_INCLUDES, ZSTR_VAL(path), ZSTR_LEN(path));
		}
	} ZEND_HASH_FOREACH_END();
	outboard_rs_boot_ends(outboard_host.events);
}
