// The statistics as JSON, as lines for people, and as the XML of glibc's malloc_info. Any thread, nothing held;
// nothing is allocated.
#pragma once

#include "diagnostics/snapshot.h"
#include "diagnostics/text.h"

namespace ebb {

// One JSON object: every figure of the snapshot, the classes in use, every counter, every option.
void write_stats_json(Text* out, const Snapshot& snapshot);

// Where lines go: without their line feed.
struct LineSink {
  void (*print)(const char* line, void* arg);
  void* arg;
};

// The same for people.
void write_stats_lines(const LineSink& sink, const Snapshot& snapshot);

// As glibc: free blocks by size, then totals. What has no meaning here is left out.
void write_stats_xml(const LineSink& sink, const Snapshot& snapshot);

}  // namespace ebb
