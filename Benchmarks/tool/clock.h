#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)

int64_t monotonic_ns(void);
int64_t realtime_ns(void);

// Seconds of processor time that this process has used.
double cpu_seconds(void);

// The most memory that it had resident.
long peak_kib(void);

// "2026-11-29T12:40:00.000Z" and its end.
#define INSTANT_LENGTH 24
void format_instant(int64_t realtime, char text[INSTANT_LENGTH + 1]);

// Nanoseconds since 1970 of such a text, false where it is none.
bool parse_instant(const char *text, size_t length, int64_t *realtime);

#endif
