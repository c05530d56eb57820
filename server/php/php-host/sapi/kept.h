/*
 * What a rewind leaves as it is (src/rewind/kept_variables.rs). Used by the owners of such variables.
 */
#ifndef OUTBOARD_KEPT_H
#define OUTBOARD_KEPT_H

/*
 * Of a variable that says what this process is in memory that it shares with others. It must not point to
 * memory that the boot or a request has allocated.
 */
#define OUTBOARD_KEPT __attribute__((section("outboard_kept")))

#endif
