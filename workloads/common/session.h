// One run of a workload: its events, its checkpoints, its region of interest.
//
// Made by main after the arguments are parsed; main thread only. docs/workload-protocol.md is the
// contract. Every line is formatted in a buffer of the session and sent with write(2).
// Invariants: 1. `start` is the first event, `end` the last, checkpoints are numbered from 0.
//             2. the region is open at most once at a time; a checkpoint inside it is not counted.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "common/adapter.h"
#include "common/region.h"
#include "common/text.h"

namespace tidemark {

// A figure of the workload's own. The name carries its unit last.
struct Metric {
  const char* name;
  double value;
};

class Session {
 public:
  Session(const char* workload, Uses uses = {});
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Adapter& adapter() const { return adapter_; }
  std::uint64_t started_ns() const { return started_ns_; }

  void begin_region();
  void end_region();

  // Writes the line and, with descriptors, waits until the reader answers or is gone.
  void checkpoint(std::uint64_t round, const char* label, std::uint64_t live_bytes,
                  std::initializer_list<Metric> metrics = {});

  // The last event. `operations` are those inside the region of interest. Returns main's exit code.
  // Adds `region_s` and `faults_minor` of the region when there was one.
  int end(std::uint64_t checksum, std::uint64_t operations, std::initializer_list<Metric> metrics = {});

 private:
  void add_modes(const Uses& uses);
  void open_counters();
  void close_counters();
  void send();
  void wait_for_reader();

  const std::uint64_t started_ns_;
  Adapter adapter_;
  CounterControl counters_;
  int write_descriptor_;
  int read_descriptor_;
  std::uint64_t next_checkpoint_ = 0;
  bool in_region_ = false;
  std::uint64_t region_opened_ns_ = 0;
  std::uint64_t region_ns_ = 0;
  std::uint64_t faults_at_open_ = 0;
  std::uint64_t region_faults_ = 0;
  bool had_region_ = false;
  Text line_;
};

}  // namespace tidemark
