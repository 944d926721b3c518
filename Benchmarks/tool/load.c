#include "load.h"

#include <stdio.h>
#include <unistd.h>

#include "clock.h"
#include "fail.h"
#include "messages.h"

void load_check(struct load *load) {
  static char run[64];
  if (strcmp(load->command, "extend") != 0 && strcmp(load->command, "role") != 0)
    fail("--command must be extend or role");
  if (load->rooms < 1) fail("--rooms must be at least 1");
  if (load->window < 1 || load->window >= LEDGER_LIMIT) fail("--window must be from 1 to %d", LEDGER_LIMIT - 1);
  if (!load->run) {
    snprintf(run, sizeof run, "b%x%x", (unsigned)(realtime_ns() / MILLISECOND), (unsigned)getpid());
    load->run = run;
  }
}

void load_publish(const struct load *load, struct wire *wire, struct ledger *ledger, long k, int64_t realtime) {
  static struct buffer room, id;
  buffer_clear(&id);
  put_slice(&id, slice_of(load->run));
  PUT_LITERAL(&id, "-");
  put_decimal(&id, (uint64_t)k);
  struct slice name = room_name(&room, load->prefix, ((uint64_t)load->first + (uint64_t)k * (uint64_t)load->stride) %
                                                         (uint64_t)load->rooms);
  struct address address = {slice_of(load->exchange), name, buffer_slice(&id), slice_of(load->reply_to)};
  if (strcmp(load->command, "extend") == 0)
    publish_extend(wire, 1, &address, realtime);
  else
    publish_role(wire, 1, &address, k / load->rooms % 2 == 0, realtime);
  ledger->published++;
}
