#ifndef OVERTIME_CJANSSON_SHIM_H
#define OVERTIME_CJANSSON_SHIM_H

#include <jansson.h>

#endif
