#ifndef OVERTIME_CSQLITE_SHIM_H
#define OVERTIME_CSQLITE_SHIM_H

#include <sqlite3.h>

/// SQLITE_TRANSIENT is a cast that Swift cannot import: SQLite copies the bytes at once.
static inline sqlite3_destructor_type overtime_sqlite_transient(void) { return SQLITE_TRANSIENT; }

/// sqlite3_config is variadic. Without memory statistics an allocation takes no global lock. Must come before
/// SQLite's first use; later it is refused, which does no harm.
static inline int overtime_sqlite_drop_memory_statistics(void) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

/// sqlite3_db_config is variadic too. Closing then leaves the log of a database that may be damaged as it is.
static inline int overtime_sqlite_keep_log(sqlite3 *connection) {
    return sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}

#endif
