#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"

static void assign(const struct option_spec *spec, const char *text) {
  char *end = NULL;
  errno = 0;
  switch (spec->kind) {
  case OPTION_TEXT:
    *(const char **)spec->value = text;
    return;
  case OPTION_COUNT: {
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < 0) fail("--%s takes a count, not \"%s\"", spec->name, text);
    *(long *)spec->value = value;
    return;
  }
  case OPTION_REAL: {
    double value = strtod(text, &end);
    if (errno || end == text || *end || !isfinite(value) || value < 0)
      fail("--%s takes a number, not \"%s\"", spec->name, text);
    *(double *)spec->value = value;
    return;
  }
  case OPTION_FLAG:
    *(bool *)spec->value = true;
    return;
  }
}

void parse_options(int argc, char **argv, const struct option_spec *specs, int count) {
  uint64_t given = 0;
  for (int i = 1; i < argc; i++) {
    if (strncmp(argv[i], "--", 2) != 0) fail("unexpected argument \"%s\"", argv[i]);
    const char *name = argv[i] + 2;
    const char *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    int k = 0;
    while (k < count && !(strlen(specs[k].name) == length && strncmp(specs[k].name, name, length) == 0)) k++;
    if (k == count) fail("unknown option \"%s\"", argv[i]);
    given |= UINT64_C(1) << k;
    const char *value = equals ? equals + 1 : NULL;
    if (specs[k].kind == OPTION_FLAG) {
      if (value) fail("--%s takes no value", specs[k].name);
    } else if (!value) {
      if (++i == argc) fail("--%s needs a value", specs[k].name);
      value = argv[i];
    }
    assign(&specs[k], value);
  }
  for (int k = 0; k < count; k++) {
    if (specs[k].required && !(given >> k & 1)) fail("--%s is missing", specs[k].name);
  }
}
