#define _GNU_SOURCE
#include "clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "fail.h"

static int64_t read_clock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * SECOND + now.tv_nsec;
}

int64_t monotonic_ns(void) { return read_clock(CLOCK_MONOTONIC); }

int64_t realtime_ns(void) { return read_clock(CLOCK_REALTIME); }

double cpu_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

long peak_kib(void) {
  // Not `ru_maxrss`, which a process has from the one that started it.
  long peak = 0;
  char line[256];
  FILE *status = fopen("/proc/self/status", "r");
  if (!status) fail("/proc/self/status cannot be read");
  while (fgets(line, sizeof line, status))
    if (sscanf(line, "VmHWM: %ld", &peak) == 1) break;
  fclose(status);
  return peak;
}

void format_instant(int64_t realtime, char text[INSTANT_LENGTH + 1]) {
  time_t seconds = realtime / SECOND;
  struct tm parts;
  gmtime_r(&seconds, &parts);
  char date[64];
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  char whole[96];
  snprintf(whole, sizeof whole, "%s.%03dZ", date, (int)(realtime % SECOND / MILLISECOND));
  memcpy(text, whole, INSTANT_LENGTH);
  text[INSTANT_LENGTH] = 0;
}

bool parse_instant(const char *text, size_t length, int64_t *realtime) {
  if (length < INSTANT_LENGTH) return false;
  char copy[INSTANT_LENGTH + 1];
  memcpy(copy, text, INSTANT_LENGTH);
  copy[INSTANT_LENGTH] = 0;
  struct tm parts = {0};
  int milliseconds;
  int end = 0;
  int count = sscanf(copy, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
                     &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &milliseconds, &end);
  if (count != 7 || end != INSTANT_LENGTH) return false;
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  *realtime = timegm(&parts) * SECOND + milliseconds * MILLISECOND;
  return true;
}
