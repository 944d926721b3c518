#ifndef BENCH_PERCENTILES_H
#define BENCH_PERCENTILES_H

#include <stddef.h>

struct samples {
  double *values;
  size_t count, capacity;
};

void samples_add(struct samples *samples, double value);

// Prints "count":…,"p50":… and so on, as members of an object that the caller has begun.
void samples_print_members(struct samples *samples);

// Prints {"count":…,"p50":…,"p90":…,"p99":…,"p999":…,"max":…}; with no samples figures are null. Each is a sample
// that was taken: the smallest one that at least so many per cent are not above.
void samples_print(struct samples *samples);

#endif
