#ifndef OVERTIME_CPOSTGRES_SHIM_H
#define OVERTIME_CPOSTGRES_SHIM_H

#include <libpq-fe.h>

#endif
