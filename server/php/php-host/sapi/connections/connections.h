/*
 * Connections over a snapshot: what the files about them share, one block per file.
 */
#ifndef OUTBOARD_CONNECTIONS_H
#define OUTBOARD_CONNECTIONS_H

#include "coroutine/coroutine.h"

/* A line of PHP code, and the function that was called there. */
typedef struct {
	char text[256];
} outboard_place;

/* With higher numbers than this the places are not known. */
#define OUTBOARD_DESCRIPTORS_MAX 1024

enum outboard_fate {
	OUTBOARD_UNKNOWN,
	OUTBOARD_OF_START, /* open before the boot: of the host, of PHP and of its extensions */
	OUTBOARD_SEVERED, /* its use is logged */
	OUTBOARD_HEALING, /* its client connects again */
};

typedef struct {
	char *place; /* where it was connected; NULL: unknown */
	enum outboard_fate fate;
	const char *kind;
	uint64_t identity; /* of what the number names since then */
} outboard_descriptor;

/* connections/connections.c */
outboard_descriptor *outboard_descriptor_of(int fd);
void outboard_connections_set_boot(bool runs);
bool outboard_sever(int fd);
bool outboard_connections_connect(int fd, const void *caller);
void outboard_connections_opened(int fd);
void outboard_connection_sever(int fd);
void outboard_connection_is_refused(const char *kind, const char *place, const char *why);
void outboard_place_here(outboard_place *place);
bool outboard_connections_in_boot(void);
void outboard_severed_is_used(int fd);

/* connections/closing.c */
void outboard_connections_startup(const outboard_start *start);
void outboard_connections_close(void);
void outboard_connections_keep(void);

/* connections/kept.c: what a worker has in memory that is not rewound (src/kept_connections.rs). */

/* Whether this process keeps connections. */
bool outboard_keeps_connections(void);
bool outboard_is_quiet(int fd);
int outboard_divert(int fd);
bool outboard_adoption_begin(const char *greeting, size_t len);
bool outboard_adoption_connect(int fd);
bool outboard_adoption_end(int fd, int adopted);
void outboard_replace_descriptor(int from, int to);

/* Bytes in the C library's heap. */
typedef struct {
	char *bytes;
	size_t len;
	size_t size;
} outboard_bytes;

void outboard_bytes_add(outboard_bytes *to, const void *bytes, size_t len);
void outboard_bytes_add_part(outboard_bytes *to, const char *text, size_t len);
void outboard_bytes_free(outboard_bytes *bytes);

/* connections/mysql.c */
void outboard_mysql_startup(void);
void outboard_mysql_close(void);
void outboard_mysql_keep(void);

/* connections/pgsql.c */
void outboard_pgsql_close(void);

/* connections/renewed.c */
uint64_t outboard_identity_of(int fd);
bool outboard_is_temporary(int fd);
bool outboard_renewed_find(int fd);
void outboard_renewed_open(void);

#endif
