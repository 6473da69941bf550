// Events and checkpoints; see session.h.
#include "common/session.h"

#include <unistd.h>
#include <cerrno>
#include <csignal>

#include "common/clock.h"
#include "common/descriptors.h"
#include "common/exits.h"
#include "common/resident.h"
#include "common/table.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kProtocol = 1;

double seconds(std::uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / static_cast<double>(kNanosecondsPerSecond);
}

void add_metric(Text& line, bool& first, const char* name, double value) {
  if (!first) line.add(", ");
  first = false;
  line.add_json_string(name).add(": ").add_number(value);
}

}  // namespace

Session::Session(const char* workload, Uses uses) : started_ns_(now_ns()), adapter_(find_adapter()) {
  set_program_name(workload);
  if (uses.heap_delete && adapter_.heap_delete_native == nullptr) adapter_.drop_heaps();
  // A reader that is gone shows as EPIPE, which has a sentence; the signal would end us without one.
  std::signal(SIGPIPE, SIG_IGN);
  const DescriptorPair pair = inherited_descriptors("TIDEMARK_CHECKPOINT_FDS");
  write_descriptor_ = pair.present() ? pair.first : STDOUT_FILENO;
  read_descriptor_ = pair.second;
  line_.add("{\"event\": \"start\", \"protocol\": ").add_unsigned(kProtocol);
  line_.add(", \"workload\": ").add_json_string(workload);
  line_.add(", \"pid\": ").add_unsigned(static_cast<std::uint64_t>(getpid()));
  line_.add(", \"malloc_object\": ").add_json_string(adapter_.malloc_object);
  line_.add(", \"adapter\": ").add_json_string(adapter_.name);
  add_modes(uses);
  send();
}

void Session::add_modes(const Uses& uses) {
  const auto word = [](bool used, bool native) { return !used ? "unused" : native ? "native" : "emulated"; };
  line_.add(", \"modes\": {\"heap\": ").add_json_string(word(uses.heap || uses.heap_delete, adapter_.heap_native()));
  line_.add(", \"collect\": ").add_json_string(word(uses.collect, adapter_.collect_native()));
  line_.add(", \"park\": ").add_json_string(word(uses.park, adapter_.park_native())).add("}}\n");
}

void Session::begin_region() {
  in_region_ = true;
  had_region_ = true;
  open_counters();
}

void Session::end_region() {
  close_counters();
  in_region_ = false;
}

void Session::open_counters() {
  faults_at_open_ = minor_faults();
  region_opened_ns_ = now_ns();
  counters_.enable();
  toggle_callgrind();
}

void Session::close_counters() {
  toggle_callgrind();
  counters_.disable();
  region_ns_ += now_ns() - region_opened_ns_;
  region_faults_ += minor_faults() - faults_at_open_;
}

void Session::checkpoint(std::uint64_t round, const char* label, std::uint64_t live_bytes,
                         std::initializer_list<Metric> metrics) {
  if (in_region_) close_counters();
  line_.add("{\"event\": \"checkpoint\", \"checkpoint\": ").add_unsigned(next_checkpoint_++);
  line_.add(", \"round\": ").add_unsigned(round).add(", \"label\": ").add_json_string(label);
  line_.add(", \"time_s\": ").add_number(seconds(now_ns() - started_ns_));
  line_.add(", \"live_bytes\": ").add_unsigned(live_bytes).add(", \"metrics\": {");
  bool first = true;
  add_metric(line_, first, "driver_bytes", static_cast<double>(driver_bytes.load(std::memory_order_relaxed)));
  for (const Metric& metric : metrics) add_metric(line_, first, metric.name, metric.value);
  line_.add("}}\n");
  send();
  wait_for_reader();
  if (in_region_) open_counters();
}

int Session::end(std::uint64_t checksum, std::uint64_t operations, std::initializer_list<Metric> metrics) {
  line_.add("{\"event\": \"end\", \"checksum\": \"").add_hex16(checksum);
  line_.add("\", \"operations\": ").add_unsigned(operations).add(", \"metrics\": {");
  bool first = true;
  if (had_region_) {
    add_metric(line_, first, "region_s", seconds(region_ns_));
    add_metric(line_, first, "faults_minor", static_cast<double>(region_faults_));
  }
  for (const Metric& metric : metrics) add_metric(line_, first, metric.name, metric.value);
  line_.add("}}\n");
  send();
  return 0;
}

void Session::send() {
  if (line_.truncated()) fail_broken("an event did not fit its buffer");
  if (!write_all(write_descriptor_, line_.view())) fail_broken_errno("cannot write an event");
  line_.clear();
}

void Session::wait_for_reader() {
  if (read_descriptor_ < 0) return;
  char byte;
  while (read(read_descriptor_, &byte, 1) < 0) {
    if (errno != EINTR) fail_broken_errno("cannot read the answer to a checkpoint");
  }
}

}  // namespace tidemark
