// What glibc offers beyond the standard: malloc_trim, mallinfo, mallinfo2, malloc_stats, malloc_info, mallopt.
// In builds that replace malloc only. Any thread.
//
// mallinfo: everything the program holds is in uordblks, large blocks included, and hblkhd is 0. So the sum of
// both, which glibc's users form, is right, and so is uordblks alone. arena = uordblks + fordblks, as in glibc;
// keepcost is what malloc_trim would give back at once.
#include "api/alias.h"

#if defined(EBB_OVERRIDE)

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>

#include "base/bits.h"
#include "diagnostics/stats_text.h"
#include "ebb/ebb.h"
#include "stats/counters.h"

using namespace ebb;

namespace {

// The old structure has int fields: what they cannot hold is INT_MAX, not a wrapped number.
int saturated(size_t value) { return static_cast<int>(min_of<size_t>(value, INT_MAX)); }

size_t returned_bytes() { return counted(Counter::k_purged_bytes) + counted(Counter::k_holes_bytes); }

void print_to_file(const char* line, void* file) {
  fputs(line, static_cast<FILE*>(file));
  fputc('\n', static_cast<FILE*>(file));
}

}  // namespace

extern "C" {

// `pad` is glibc's reserve at the top of its heap; there is none here. 1 when memory went back, else 0.
EBB_EXPORT int malloc_trim(size_t pad) noexcept {
  (void)pad;
  size_t before = returned_bytes();
  ebb_collect(true);
  return returned_bytes() != before;
}

EBB_EXPORT struct mallinfo2 mallinfo2(void) noexcept {
  Snapshot snapshot;
  take_snapshot(&snapshot);
  struct mallinfo2 info = {};
  for (const ClassUse& use : snapshot.classes) info.ordblks += use.free_blocks;
  info.uordblks = snapshot.live_bytes;
  info.arena = max_of(snapshot.span_bytes + snapshot.dirty_bytes, snapshot.live_bytes);
  info.fordblks = info.arena - info.uordblks;
  info.keepcost = snapshot.dirty_bytes;
  return info;
}

EBB_EXPORT struct mallinfo mallinfo(void) noexcept {
  struct mallinfo2 wide = mallinfo2();
  struct mallinfo info = {};
  info.arena = saturated(wide.arena);
  info.ordblks = saturated(wide.ordblks);
  info.uordblks = saturated(wide.uordblks);
  info.fordblks = saturated(wide.fordblks);
  info.keepcost = saturated(wide.keepcost);
  return info;
}

EBB_EXPORT void malloc_stats(void) noexcept { ebb_stats_print(nullptr, nullptr); }

// XML as glibc's. EINVAL (returned, as glibc does) for options, of which there are none.
EBB_EXPORT int malloc_info(int options, FILE* file) noexcept {
  if (options != 0) return EINVAL;
  Snapshot snapshot;
  take_snapshot(&snapshot);
  write_stats_xml({print_to_file, file}, snapshot);
  return 0;
}

// glibc's parameters describe glibc's algorithms. Those of them that are known are accepted and have no effect
// (1, as programs treat 0 as fatal); unknown ones are refused (0). Ebb's options: ebb_option_set.
EBB_EXPORT int mallopt(int parameter, int value) noexcept {
  (void)value;
  switch (parameter) {
    case M_MXFAST:
    case M_TRIM_THRESHOLD:
    case M_TOP_PAD:
    case M_MMAP_THRESHOLD:
    case M_MMAP_MAX:
    case M_CHECK_ACTION:
    case M_PERTURB:
    case M_ARENA_TEST:
    case M_ARENA_MAX:
      return 1;
    default:
      return 0;
  }
}

}  // extern "C"

EBB_ALIAS(__libc_mallinfo, mallinfo, struct mallinfo, void);
EBB_ALIAS(__libc_mallopt, mallopt, int, int, int);

#endif
