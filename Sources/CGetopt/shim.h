#ifndef OVERTIME_CGETOPT_SHIM_H
#define OVERTIME_CGETOPT_SHIM_H

#include <getopt.h>

/// getopt keeps its state in globals, which Swift rightly will not touch: these do.
static inline void overtime_getopt_start(void) {
    optind = 0;
    opterr = 0;
}
static inline int overtime_getopt_index(void) { return optind; }
static inline const char *overtime_getopt_argument(void) { return optarg; }

#endif
