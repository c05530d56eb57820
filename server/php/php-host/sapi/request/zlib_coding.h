/*
 * The content coding that ext/zlib negotiated with a client (zlib_coding.c).
 */
#ifndef OUTBOARD_ZLIB_CODING_H
#define OUTBOARD_ZLIB_CODING_H

#include <stdbool.h>

typedef struct {
	void *context;   /* of a call of ob_gzhandler() */
	bool registered; /* zlib.output_compression has its handler */
	int coding;
} outboard_zlib_coding;

/* Without the extension these functions do nothing. */
void outboard_zlib_startup(void);
void outboard_zlib_save(outboard_zlib_coding *coding);
void outboard_zlib_restore(const outboard_zlib_coding *coding);
void outboard_zlib_begin(void);
void outboard_zlib_end(void);

#endif
