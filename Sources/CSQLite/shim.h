#ifndef OVERTIME_CSQLITE_SHIM_H
#define OVERTIME_CSQLITE_SHIM_H

#include <sqlite3.h>

/// SQLITE_TRANSIENT is a cast that Swift cannot import: SQLite copies the bytes at once.
static inline sqlite3_destructor_type overtime_sqlite_transient(void) { return SQLITE_TRANSIENT; }

#endif
