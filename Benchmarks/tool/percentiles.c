#include "percentiles.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fail.h"

void samples_add(struct samples *samples, double value) {
  if (samples->count == samples->capacity) {
    samples->capacity = samples->capacity ? samples->capacity * 2 : 1024;
    samples->values = realloc(samples->values, samples->capacity * sizeof *samples->values);
    if (!samples->values) fail("out of memory");
  }
  samples->values[samples->count++] = value;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void samples_print_members(struct samples *samples) {
  static const struct {
    const char *name;
    double part;
  } ranks[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1}};
  if (samples->count) qsort(samples->values, samples->count, sizeof *samples->values, compare);
  printf("\"count\":%zu", samples->count);
  for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
    if (!samples->count) {
      printf(",\"%s\":null", ranks[i].name);
      continue;
    }
    // The small difference keeps 0.999 * 1000 from being more than 999.
    size_t rank = (size_t)ceil(ranks[i].part * (double)samples->count - 1e-6);
    printf(",\"%s\":%.4f", ranks[i].name, samples->values[rank ? rank - 1 : 0]);
  }
}

void samples_print(struct samples *samples) {
  putchar('{');
  samples_print_members(samples);
  putchar('}');
}
