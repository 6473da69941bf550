// fork_cow: a child that frees what it inherited.
//
// Like a snapshot process that drops what it has written: the parent fills memory with small blocks and
// forks; the child frees all of them. Pages that freeing writes to are copied, so a child that should
// need nothing needs as much as the parent. `child_dirty_bytes` is what is private to the child when it has
// freed everything, `child_faults` how many pages were copied or made on the way: an allocator that gives
// the copies back at once has paid for them all the same.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
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
  std::uint64_t blocks = 600'000;
  std::uint64_t size = 500;
  std::uint64_t seed = 1;
};

struct Growth {
  std::uint64_t dirty_bytes;
  std::uint64_t faults;
};

void fill_all(Table<Block>& blocks, const Options& options) {
  Random random(options.seed);
  for (Block& block : blocks) block = make_filled(options.size, random.next());
}

// Addresses come from a table that the child only reads, so that the table costs it nothing.
[[noreturn]] void run_child(const Table<Block>& blocks, int answer) {
  const std::uint64_t dirty_before = private_dirty_bytes();
  const std::uint64_t faults_before = minor_faults();
  for (std::size_t index = 0; index < blocks.size(); ++index) {
    const Block& block = blocks[index];
    check(block.address, block.size, block.tag);
    std::free(block.address);
  }
  const std::uint64_t faults = minor_faults() - faults_before;
  const std::uint64_t dirty_after = private_dirty_bytes();
  const Growth grown{dirty_after > dirty_before ? dirty_after - dirty_before : 0, faults};
  _exit(write(answer, &grown, sizeof grown) == sizeof grown ? 0 : kExitBroken);
}

Growth free_in_child(const Table<Block>& blocks) {
  int answer[2];
  if (pipe2(answer, O_CLOEXEC) != 0) fail_broken_errno("cannot make a pipe");
  const pid_t child = fork();
  if (child < 0) fail_broken_errno("cannot fork");
  if (child == 0) run_child(blocks, answer[1]);
  close(answer[1]);
  Growth grown{};
  const ssize_t got = read(answer[0], &grown, sizeof grown);
  close(answer[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || got != sizeof grown) {
    fail_corruption("a child of fork died or found wrong contents");
  }
  return grown;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Option table[] = {
      integer("--blocks", options.blocks, 1, 100'000'000, "blocks that the parent fills"),
      integer("--size", options.size, kMinStampedBytes, 1 << 20, "size of a block in bytes"),
      integer("--seed", options.seed, 0, UINT32_MAX, "seed of the random numbers"),
  };
  parse_arguments(TIDEMARK_WORKLOAD, "A child frees what it inherited.", table, argc, argv);
  Session session(TIDEMARK_WORKLOAD);
  Table<Block> blocks(options.blocks);
  fill_all(blocks, options);
  session.checkpoint(0, "filled", options.blocks * options.size);
  session.begin_region();
  const Growth grown = free_in_child(blocks);
  session.end_region();
  // The parent's blocks are its own: whatever the child did must not show.
  Checksum checksum;
  for (Block& block : blocks) {
    checksum.add(block.tag);
    free_filled(block);
  }
  session.checkpoint(0, "freed", 0);
  return session.end(checksum.value(), options.blocks,
                     {{"child_dirty_bytes", static_cast<double>(grown.dirty_bytes)},
                      {"child_faults", static_cast<double>(grown.faults)}});
}
