// libFuzzer over the state machine of heaps, sub-processes and arenas: each input is a history, a byte a choice. Ends
// the process, which keeps the input, when the allocator and the model differ.
#include <cstdio>
#include <cstdlib>

#include "heaps/heap_machine.h"

namespace {

constexpr int kStepsMost = 300;

struct Input {
  const uint8_t* at;
  const uint8_t* end;

  bool is_empty() const { return at == end; }
  uint32_t next(uint32_t bound) {
    uint32_t value = 0;
    for (uint32_t range = 1; range < bound && !is_empty(); range <<= 8) value = value << 8 | *at++;
    return value % bound;
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input{data, data + size};
  ebb::test::HeapMachine machine([&input](uint32_t bound) { return input.next(bound); });
  for (int step = 0; step < kStepsMost && !input.is_empty(); ++step) {
    if (machine.step()) continue;
    fprintf(stderr, "step %d: %s\n", step, machine.error().c_str());
    abort();
  }
  return 0;
}
