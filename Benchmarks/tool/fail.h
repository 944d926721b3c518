#ifndef BENCH_FAIL_H
#define BENCH_FAIL_H

// Says on one line of stderr what is wrong, and ends the program with 1.
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
