/*
 * Reopens in a fork the files that the boot has opened, so that each request has its own position
 * and its own locks of flock(2). Called just after the fork (forked in hooks.h).
 *
 * Only regular files can be reopened (/proc/self/fd, proc(5)); sockets and pipes stay shared.
 */
#include "fork/fork.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Replaces the descriptor; if the file cannot be opened again, the old one stays. */
static void reopen(int fd)
{
	char path[32];
	struct stat status;
	const int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
		return;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	const int own = open(path, flags | O_CLOEXEC);
	if (own < 0) {
		return;
	}
	const off_t position = lseek(fd, 0, SEEK_CUR);
	if (position < 0 || lseek(own, position, SEEK_SET) == position) {
		dup3(own, fd, fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0);
	}
	close(own);
}

/* The script itself is open, too, and nobody reads on in it. */
void outboard_reopen_files(void)
{
	const zend_file_handle *file = outboard_host.script;
	const void *script = file && file->type == ZEND_HANDLE_STREAM ? file->handle.stream.handle : NULL;
	zend_resource *resource;
	ZEND_HASH_FOREACH_PTR(&EG(regular_list), resource) {
		php_stream *stream = resource->type == php_file_le_stream() ? resource->ptr : NULL;
		int fd;
		if (stream && (const void *) stream != script && php_stream_is(stream, PHP_STREAM_IS_STDIO)
			&& php_stream_cast(stream, PHP_STREAM_AS_FD | PHP_STREAM_CAST_INTERNAL, (void **) &fd, 0)
				== SUCCESS) {
			reopen(fd);
		}
	} ZEND_HASH_FOREACH_END();
}
