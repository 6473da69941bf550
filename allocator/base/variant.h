// Which build this is, for code that differs in what it looks at. What differs in layout or on a fast path stands in
// one header each: page/block.h, page/live_blocks.h, heap/checked_release.h, os/lock.h.
#pragma once

namespace ebb {

#if defined(EBB_SECURE)
constexpr bool kSecure = true;
#else
constexpr bool kSecure = false;
#endif

// Whether calls that make no sense stop the process with a report. The release build refuses those that it sees.
#if defined(EBB_DEBUG) || defined(EBB_SECURE)
constexpr bool kReportsMisuse = true;
#else
constexpr bool kReportsMisuse = false;
#endif

}  // namespace ebb
