// Reading smaps_rollup and counting live pages; see resident.h.
#include "common/resident.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <string_view>

#include "common/exits.h"
#include "common/table.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kKibibyte = 1024;

// The number behind `key` in `text`; ends the process when there is none.
std::uint64_t number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) fail_broken("/proc/self/smaps_rollup lacks the line that is wanted");
  std::uint64_t value = 0;
  bool digits = false;
  for (std::size_t index = at + key.size(); index < text.size(); ++index) {
    const char byte = text[index];
    if (byte >= '0' && byte <= '9') {
      value = value * 10 + static_cast<std::uint64_t>(byte - '0');
      digits = true;
    } else if (digits) {
      break;
    }
  }
  return value;
}

// One figure of smaps_rollup in bytes; `key` ends with its colon.
std::uint64_t rollup_bytes(std::string_view key) {
  const int file = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
  if (file < 0) fail_broken_errno("cannot open /proc/self/smaps_rollup");
  char text[4096];
  std::size_t used = 0;
  for (;;) {
    const ssize_t got = read(file, text + used, sizeof text - used);
    if (got < 0) fail_broken_errno("cannot read /proc/self/smaps_rollup");
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  close(file);
  return number_after({text, used}, key) * kKibibyte;
}

std::uint64_t page_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address) / page_bytes(); }

std::uint64_t last_page(const Extent& extent) {
  return page_of(static_cast<const char*>(extent.begin) + extent.bytes - 1);
}

}  // namespace

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::uint64_t resident_bytes() { return rollup_bytes("Rss:"); }

std::uint64_t private_dirty_bytes() { return rollup_bytes("Private_Dirty:"); }

std::uint64_t minor_faults() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_minflt);
}

std::uint64_t floor_bytes(std::span<const Block> blocks) {
  Table<Extent> live(blocks.size());
  std::size_t count = 0;
  for (const Block& block : blocks) {
    if (block.address != nullptr) live[count++] = {block.address, block.size};
  }
  return floor_bytes(std::span<const Extent>(live.part(0, count)));
}

std::uint64_t floor_bytes(std::span<const Extent> live) {
  std::size_t count = 0;
  for (const Extent& extent : live) count += last_page(extent) - page_of(extent.begin) + 1;
  if (count == 0) return 0;
  Table<std::uint64_t> pages(count);
  std::size_t used = 0;
  for (const Extent& extent : live) {
    for (std::uint64_t page = page_of(extent.begin); page <= last_page(extent); ++page) pages[used++] = page;
  }
  std::sort(pages.begin(), pages.end());
  const std::uint64_t* end = std::unique(pages.begin(), pages.end());
  return static_cast<std::uint64_t>(end - pages.begin()) * page_bytes();
}

}  // namespace tidemark
