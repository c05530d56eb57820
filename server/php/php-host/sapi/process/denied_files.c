/*
 * Calls with a path that fail with EACCES: src/sandbox/denials.rs logs those that the sandbox has denied. open and
 * its like are in snapshot/boot_files.c, which has them replaced already.
 *
 * Exported for PHP and its extensions (build.rs). Invariant: results and errno are those of the C library.
 */
#include "process/process.h"
#include "interpose.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void outboard_denied(outboard_denied_use use, const char *path)
{
	const int error = errno;
	if (path) {
		outboard_rs_denied(use, path, strlen(path));
	}
	errno = error;
	OUTBOARD_ASSERT(error != 0);
}

/* AddressSanitizer makes directories before its shadow memory is there. */
#ifndef __SANITIZE_ADDRESS__
#define CHANGES(name, parameters, arguments, path) \
	int name parameters \
	{ \
		REAL(name); \
		return OUTBOARD_UNLESS_DENIED(real arguments, OUTBOARD_DENIED_CHANGE, path); \
	}

CHANGES(mkdir, (const char *path, mode_t mode), (path, mode), path)
CHANGES(rmdir, (const char *path), (path), path)
CHANGES(unlink, (const char *path), (path), path)
/* Of the two directories the new one is named: the old one is more often the app's own. */
CHANGES(rename, (const char *from, const char *to), (from, to), to)
#endif
