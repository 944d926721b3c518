#include "fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("bench-tool: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  fflush(stdout);
  exit(1);
}
