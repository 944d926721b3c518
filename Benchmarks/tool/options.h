#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>

// An option of a subcommand. `value` points to a `const char *` (text), a `long` (count, never negative), a `double`
// (real, never negative) or a `bool` (flag), and holds the default beforehand.
struct option_spec {
  const char *name;
  enum { OPTION_TEXT, OPTION_COUNT, OPTION_REAL, OPTION_FLAG } kind;
  void *value;
  bool required;
};

// Reads `--name value` and `--name=value`; ends the program at anything else.
void parse_options(int argc, char **argv, const struct option_spec *specs, int count);

#define OPTIONS(argc, argv, ...)                                                                                       \
  do {                                                                                                                 \
    const struct option_spec specs_[] = {__VA_ARGS__};                                                                 \
    parse_options((argc), (argv), specs_, (int)(sizeof specs_ / sizeof specs_[0]));                                    \
  } while (0)

#endif
