#ifndef OVERTIME_CALLOCATOR_SHIM_H
#define OVERTIME_CALLOCATOR_SHIM_H

#include <malloc.h>

#endif
