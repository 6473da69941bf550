// heaps: a heap made, used a little and destroyed.
//
// Shape `cycle` makes a heap, allocates a few blocks in it and destroys it, over and over: the cost of a
// heap that lives for one request. Shape `alive` keeps many heaps of one block each and reports what each
// takes in resident memory (`heap_bytes`). Without native heaps both come down to malloc and free.
#include <cstdint>

#include "common/arguments.h"
#include "common/blocks.h"
#include "common/checksum.h"
#include "common/random.h"
#include "common/resident.h"
#include "common/session.h"
#include "common/table.h"

namespace {

using namespace tidemark;

constexpr const char* kShapes[] = {"cycle", "alive"};
enum Shape : std::uint64_t { kCycle, kAlive };

struct Options {
  std::uint64_t shape = kCycle;
  std::uint64_t heaps = 2000;
  std::uint64_t blocks = 1;
  std::uint64_t size = 200;
  std::uint64_t seed = 1;
};

class Heaps {
 public:
  Heaps(Session& session, const Options& options)
      : session_(session), options_(options), heaps_(options.heaps), blocks_(options.heaps * options.blocks) {}

  // One heap at a time in the first slots, so that nothing but heaps grows.
  Checksum cycle() {
    build(0, 0);  // what the first heap of a process costs is another question
    destroy(0, 0);
    session_.begin_region();
    for (std::uint64_t number = 1; number <= options_.heaps; ++number) {
      build(0, number);
      destroy(0, number);
    }
    session_.end_region();
    session_.checkpoint(0, "round", 0);
    return checksum_;
  }

  Checksum alive(double& heap_bytes) {
    const std::uint64_t before = resident_bytes();
    session_.begin_region();
    for (std::uint64_t index = 0; index < options_.heaps; ++index) build(index, index);
    session_.end_region();
    const std::uint64_t after = resident_bytes();
    const std::uint64_t grown = after > before ? after - before : 0;
    heap_bytes = static_cast<double>(grown) / static_cast<double>(options_.heaps);
    session_.checkpoint(0, "peak", blocks_.size() * options_.size, {{"heap_bytes", heap_bytes}});
    for (std::uint64_t index = 0; index < options_.heaps; ++index) destroy(index, index);
    session_.checkpoint(0, "round", 0);
    return checksum_;
  }

 private:
  std::span<void*> blocks_of(std::size_t slot) { return blocks_.part(slot * options_.blocks, options_.blocks); }

  std::uint64_t tag_of(std::uint64_t number, std::size_t block) const {
    return mix(options_.seed ^ mix(number * options_.blocks + block));
  }

  void build(std::size_t slot, std::uint64_t number) {
    heaps_[slot] = session_.adapter().heap_new();
    if (session_.adapter().heap_native() && heaps_[slot] == nullptr) fail_broken("no memory for a new heap");
    for (std::size_t block = 0; block < options_.blocks; ++block) {
      void* address = session_.adapter().heap_malloc(heaps_[slot], options_.size);
      if (address == nullptr) fail_broken("no memory for a block of a heap");
      stamp(address, options_.size, tag_of(number, block));
      blocks_of(slot)[block] = address;
    }
  }

  void destroy(std::size_t slot, std::uint64_t number) {
    for (std::size_t block = 0; block < options_.blocks; ++block) {
      check_stamp(blocks_of(slot)[block], options_.size, tag_of(number, block));
      checksum_.add(tag_of(number, block));
    }
    session_.adapter().heap_destroy(heaps_[slot], blocks_of(slot));
  }

  Session& session_;
  const Options options_;
  Table<void*> heaps_;
  Table<void*> blocks_;
  Checksum checksum_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      choice("--shape", options.shape, kShapes, "one heap after the other, or all alive"),
      integer("--heaps", options.heaps, 1, 10'000'000, "heaps in all"),
      integer("--blocks", options.blocks, 1, 100'000, "blocks in each heap"),
      integer("--size", options.size, kMinStampedBytes, 1 << 24, "size of a block in bytes"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of what is written"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Makes, uses and destroys heaps.", table, argc, argv);
  Session session(TIDEMARK_WORKLOAD, {.heap = true});
  Heaps heaps(session, options);
  if (options.shape == kCycle) return session.end(heaps.cycle().value(), options.heaps);
  double heap_bytes = 0;
  const Checksum checksum = heaps.alive(heap_bytes);
  return session.end(checksum.value(), options.heaps, {{"heap_bytes", heap_bytes}});
}
