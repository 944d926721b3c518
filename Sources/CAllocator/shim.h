#ifndef OVERTIME_CALLOCATOR_SHIM_H
#define OVERTIME_CALLOCATOR_SHIM_H

#include <sys/types.h>

#include <jemalloc/jemalloc.h>

#endif
