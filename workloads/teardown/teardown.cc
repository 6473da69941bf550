// teardown: objects that each own a heap are built and destroyed in rounds.
//
// A document, a request or a page with a heap of its own: every round builds `--live` objects of
// `--blocks` blocks, looks at the resident memory (`peak`), destroys them in batches and looks again
// (`round`). With native heaps an object dies at one call; elsewhere each block is freed.
#include <cstdint>

#include "common/arguments.h"
#include "common/blocks.h"
#include "common/checksum.h"
#include "common/random.h"
#include "common/session.h"
#include "common/settle.h"
#include "common/table.h"

namespace {

using namespace tidemark;

struct Options {
  std::uint64_t live = 100;
  std::uint64_t blocks = 64;
  std::uint64_t size_min = 16;
  std::uint64_t size_max = 1024;
  std::uint64_t batch = 16;
  std::uint64_t rounds = 20;
  std::uint64_t settle_ms = 0;
  std::uint64_t seed = 1;
};

// What a block looks like follows from its place and its round, so only its address is remembered. Sizes are
// the same in each round, so that rounds need the same; the tags differ.
struct Shape {
  std::size_t size;
  std::uint64_t tag;
};

class Teardown {
 public:
  Teardown(Session& session, const Options& options)
      : session_(session), options_(options), heaps_(options.live), addresses_(options.live * options.blocks) {}

  Checksum run() {
    session_.begin_region();
    for (std::uint64_t round = 0; round < options_.rounds; ++round) {
      const std::uint64_t live_bytes = build(round);
      session_.checkpoint(round, "peak", live_bytes);
      for (std::uint64_t first = 0; first < options_.live; first += options_.batch) destroy(round, first);
      settle(options_.settle_ms);
      session_.checkpoint(round, "round", 0);
    }
    session_.end_region();
    return checksum_;
  }

 private:
  Shape shape(std::uint64_t round, std::uint64_t object, std::uint64_t block) const {
    const std::uint64_t draw = mix(options_.seed ^ mix(object * options_.blocks + block));
    return {options_.size_min + Random::scale(draw, options_.size_max - options_.size_min + 1), mix(draw ^ round)};
  }

  std::uint64_t build(std::uint64_t round) {
    std::uint64_t live_bytes = 0;
    for (std::uint64_t object = 0; object < options_.live; ++object) {
      heaps_[object] = session_.adapter().heap_new();
      if (session_.adapter().heap_native() && heaps_[object] == nullptr) fail_broken("no memory for a new heap");
      for (std::uint64_t block = 0; block < options_.blocks; ++block) {
        const Shape wanted = shape(round, object, block);
        void* address = session_.adapter().heap_malloc(heaps_[object], wanted.size);
        if (address == nullptr) fail_broken("no memory for a block of a heap");
        stamp(address, wanted.size, wanted.tag);
        addresses_[object * options_.blocks + block] = address;
        live_bytes += wanted.size;
      }
    }
    return live_bytes;
  }

  // Checks a whole batch before any of it dies: a heap that shares memory with its neighbour shows.
  void destroy(std::uint64_t round, std::uint64_t first) {
    const std::uint64_t end = first + options_.batch < options_.live ? first + options_.batch : options_.live;
    for (std::uint64_t object = first; object < end; ++object) {
      for (std::uint64_t block = 0; block < options_.blocks; ++block) {
        const Shape wanted = shape(round, object, block);
        check_stamp(addresses_[object * options_.blocks + block], wanted.size, wanted.tag);
        checksum_.add(wanted.tag);
      }
    }
    for (std::uint64_t object = first; object < end; ++object) {
      session_.adapter().heap_destroy(heaps_[object], addresses_.part(object * options_.blocks, options_.blocks));
    }
  }

  Session& session_;
  const Options options_;
  Table<void*> heaps_;
  Table<void*> addresses_;
  Checksum checksum_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--live", options.live, 1, 100'000, "objects, each with its own heap, alive at once"),
      integer("--blocks", options.blocks, 1, 100'000, "blocks in each object"),
      integer("--size-min", options.size_min, kMinStampedBytes, 1 << 24, "smallest block in bytes"),
      integer("--size-max", options.size_max, kMinStampedBytes, 1 << 24, "largest block in bytes"),
      integer("--batch", options.batch, 1, 100'000, "objects destroyed together"),
      integer("--rounds", options.rounds, 1, 100'000, "rounds of building and destroying"),
      integer("--settle-ms", options.settle_ms, 0, 60'000,
              "least milliseconds of rest before a round's point; 0 for none"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "Builds and destroys objects that own a heap each.", table, argc, argv);
  if (options.size_max < options.size_min) fail_usage("--size-max must not be below --size-min");
  Session session(TIDEMARK_WORKLOAD, {.heap = true});
  Teardown teardown(session, options);
  const Checksum checksum = teardown.run();
  return session.end(checksum.value(), options.rounds * options.live * (options.blocks + 1));
}
