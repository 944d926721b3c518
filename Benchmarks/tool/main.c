#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "fail.h"

static const struct {
  const char *name;
  void (*run)(int argc, char **argv);
} commands[] = {
    {"topology", run_topology}, {"fill", run_fill}, {"replies", run_replies}, {"audit", run_audit},
    {"floor", run_floor},       {"plain", run_plain}, {"latency", run_latency}, {"emit", run_emit},
    {"timer", run_timer},
};

int main(int argc, char **argv) {
  if (argc >= 2) {
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
      if (strcmp(argv[1], commands[i].name) != 0) continue;
      commands[i].run(argc - 1, argv + 1);
      if (fflush(stdout) != 0) fail("standard output cannot be written");
      return EXIT_SUCCESS;
    }
  }
  fputs("usage: bench-tool COMMAND --url URL [--OPTION VALUE]...; COMMAND is one of", stderr);
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) fprintf(stderr, " %s", commands[i].name);
  fputc('\n', stderr);
  return 2;
}
