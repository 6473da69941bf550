// Counter control; see region.h.
#include "common/region.h"

#include <unistd.h>
#include <valgrind/callgrind.h>
#include <cerrno>
#include <string_view>

#include "common/descriptors.h"
#include "common/exits.h"
#include "common/text.h"

namespace tidemark {

CounterControl::CounterControl() {
  const DescriptorPair pair = inherited_descriptors("TIDEMARK_PERF_CONTROL_FDS");
  control_ = pair.first;
  acknowledge_ = pair.second;
}

void CounterControl::enable() { command("enable\n"); }

void CounterControl::disable() { command("disable\n"); }

void CounterControl::command(const char* line) {
  if (control_ < 0) return;
  if (!write_all(control_, line)) fail_broken_errno("cannot reach the counters' control descriptor");
  // perf sends the terminating NUL along with "ack\n", so the next answer may begin with one.
  char answer[8];
  std::size_t used = 0;
  for (;;) {
    char byte;
    const ssize_t got = read(acknowledge_, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_broken_errno("cannot read the counters' acknowledgement");
    if (got == 0) fail_broken("the counters' owner closed its descriptor before it acknowledged");
    if (byte == '\0') continue;
    if (byte == '\n') break;
    if (used == sizeof answer) fail_broken("the counters' owner answered something other than ack");
    answer[used++] = byte;
  }
  if (std::string_view(answer, used) != "ack") {
    fail_broken("the counters' owner answered something other than ack");
  }
}

void toggle_callgrind() { CALLGRIND_TOGGLE_COLLECT; }

}  // namespace tidemark
