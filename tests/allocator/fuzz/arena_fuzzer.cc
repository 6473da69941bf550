// libFuzzer over the state machine of an arena: each input is a history, a byte a choice. Ends the process, which
// keeps the input, when arena and model differ.
#include <cstdio>
#include <cstdlib>

#include "arena/arena_machine.h"

namespace ebb::test {
namespace {

constexpr uint32_t kSlices = 260;  // more than a request and a step, few enough to be used up
constexpr int kStepsMost = 400;

struct Input {
  const uint8_t* at;
  const uint8_t* end;

  bool is_empty() const { return at == end; }
  uint32_t next(uint32_t bound) {
    if (is_empty()) return 0;
    uint32_t value = *at++;
    if (bound > 256 && !is_empty()) value = value << 8 | *at++;
    return value % bound;
  }
};

}  // namespace
}  // namespace ebb::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ebb::test;
  Input input{data, data + size};
  Begins begins = static_cast<Begins>(input.next(3));
  ArenaMachine machine(kSlices, input.next(64), begins, [&input](uint32_t bound) { return input.next(bound); });
  for (int step = 0; step < kStepsMost && !input.is_empty(); ++step) {
    if (machine.step()) continue;
    fprintf(stderr, "step %d: %s\n", step, machine.error().c_str());
    abort();
  }
  return 0;
}
