// ebb_stats_get, ebb_stats_json, ebb_stats_print. Any thread; nothing is allocated.
#include <cstring>

#include "base/bits.h"
#include "base/compiler.h"
#include "diagnostics/stats_text.h"
#include "ebb/ebb.h"
#include "os/os.h"

using namespace ebb;

namespace {

// Lines to standard error, each with one call.
void print_to_error(const char* line, void*) {
  char copy[256];
  size_t length = min_of(strlen(line), sizeof(copy) - 1);
  memcpy(copy, line, length);
  copy[length] = '\n';
  os::write_error(copy, length + 1);
}

}  // namespace

extern "C" {

EBB_EXPORT bool ebb_stats_get(ebb_stats_t* stats, size_t size) {
  if (stats == nullptr || size == 0) return false;
  Snapshot snapshot;
  take_snapshot(&snapshot);
  ebb_stats_t full = {};
  full.live_bytes = snapshot.live_bytes;
  full.live_blocks = snapshot.live_blocks;
  full.resident_bytes = snapshot.resident_bytes;
  full.dirty_bytes = snapshot.dirty_bytes;
  full.committed_bytes = snapshot.committed_bytes;
  full.reserved_bytes = snapshot.reserved_bytes;
  full.metadata_bytes = snapshot.metadata_bytes;
  full.page_count = snapshot.page_count;
  full.large_count = snapshot.large_blocks;
  full.thread_count = snapshot.thread_count;
  // A caller built with another version of the structure gets the part that both know, and zeros.
  memset(stats, 0, size);
  memcpy(stats, &full, min_of(size, sizeof(full)));
  return true;
}

EBB_EXPORT size_t ebb_stats_json(char* buffer, size_t capacity) {
  Snapshot snapshot;
  take_snapshot(&snapshot);
  Text text(buffer, capacity);
  write_stats_json(&text, snapshot);
  return text.length();
}

EBB_EXPORT void ebb_stats_print(void (*print)(const char* line, void* arg), void* arg) {
  Snapshot snapshot;
  take_snapshot(&snapshot);
  write_stats_lines({print != nullptr ? print : print_to_error, arg}, snapshot);
}

}  // extern "C"
