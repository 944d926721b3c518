#ifndef BENCH_COMMANDS_H
#define BENCH_COMMANDS_H

// Each takes its own arguments, argv[0] being its name, and prints one JSON object.
void run_topology(int argc, char **argv);
void run_fill(int argc, char **argv);
void run_replies(int argc, char **argv);
void run_audit(int argc, char **argv);
void run_floor(int argc, char **argv);
void run_latency(int argc, char **argv);
void run_emit(int argc, char **argv);
void run_timer(int argc, char **argv);
void run_plain(int argc, char **argv);

#endif
