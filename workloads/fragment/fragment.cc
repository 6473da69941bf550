// fragment: long-lived blocks whose neighbours are replaced by slightly larger ones.
//
// A cache that evicts at random and refills with other sizes. Each round frees a random half of the
// blocks and allocates as many of the next size, two fifths larger until the ladder's end, then from its
// start again. The live set stays about the same size in bytes; what the holes cost is the ratio of
// resident to live bytes, which is reported, because no allocator that cannot move blocks avoids it.
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

struct Options {
  std::uint64_t live_mib = 128;
  std::uint64_t rounds = 20;
  std::uint64_t size_start = 150;
  std::uint64_t ladder = 5;
  std::uint64_t seed = 1;
};

class Fragment {
 public:
  Fragment(Session& session, const Options& options)
      : session_(session),
        options_(options),
        random_(options.seed),
        blocks_(options.live_mib * kMiB / options.size_start) {}

  Checksum run() {
    session_.begin_region();
    for (std::size_t index = 0; index < blocks_.size(); ++index) {
      if (live_bytes_ < options_.live_mib * kMiB) acquire(blocks_[index], options_.size_start);
    }
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      evict_half();
      refill(size_of(round + 1));
      const std::uint64_t floor = floor_bytes(blocks_.all());
      session_.checkpoint(round, "round", live_bytes_, {{"floor_bytes", static_cast<double>(floor)}});
    }
    session_.end_region();
    for (Block& block : blocks_) {
      if (block.address != nullptr) release(block);
    }
    return checksum_;
  }

  std::uint64_t operations() const { return operations_; }

 private:
  std::size_t size_of(std::uint64_t round) const {
    std::size_t size = options_.size_start;
    for (std::uint64_t step = round % options_.ladder; step != 0; --step) size += size * 2 / 5;
    return size;
  }

  void acquire(Block& block, std::size_t size) {
    block = make_stamped(size, random_.next());
    live_bytes_ += size;
    ++operations_;
  }

  void release(Block& block) {
    checksum_.add(block.tag ^ block.size);
    live_bytes_ -= block.size;
    free_stamped(block);
    ++operations_;
  }

  void evict_half() {
    for (Block& block : blocks_) {
      if (block.address != nullptr && random_.below(2) == 0) release(block);
    }
  }

  void refill(std::size_t size) {
    for (Block& block : blocks_) {
      if (live_bytes_ + size > options_.live_mib * kMiB) return;
      if (block.address == nullptr) acquire(block, size);
    }
  }

  Session& session_;
  const Options options_;
  Random random_;
  Table<Block> blocks_;
  Checksum checksum_;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t operations_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--live-mib", options.live_mib, 1, 1 << 20, "MiB of live blocks"),
      integer("--rounds", options.rounds, 1, 100'000, "rounds of eviction and refill"),
      integer("--size-start", options.size_start, kMinStampedBytes, 1 << 20, "first size in bytes"),
      integer("--ladder", options.ladder, 1, 20, "sizes before the first one comes again"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Evicts at random and refills with larger blocks.", table, argc, argv);
  Session session(TIDEMARK_WORKLOAD);
  Fragment fragment(session, options);
  const Checksum checksum = fragment.run();
  return session.end(checksum.value(), fragment.operations());
}
