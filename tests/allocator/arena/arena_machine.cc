#include "arena_machine.h"

#include <algorithm>
#include <cstring>

#include "os/fault.h"

namespace ebb::test {

namespace {

constexpr uint32_t kMostSlices = 200;  // of one request: beyond the exact bins, and beyond one purge step

// What the OS refuses at present, and what purges it has refused in the running step.
struct Refusals {
  bool commit = false;
  uint32_t purge_one_in = 0;  // refuses every nth; 0: none
  uint32_t purges = 0;
  std::vector<std::pair<const char*, size_t>> refused_purges;
};
Refusals g_refusals;

bool refuse(const char* call, const void* start, size_t bytes) {
  if (strcmp(call, "commit") == 0) return g_refusals.commit;
  if (strcmp(call, "purge") != 0 || g_refusals.purge_one_in == 0) return false;
  if (++g_refusals.purges % g_refusals.purge_one_in != 0) return false;
  g_refusals.refused_purges.emplace_back(static_cast<const char*>(start), bytes);
  return true;
}

}  // namespace

ArenaMachine::ArenaMachine(uint32_t slices, uint32_t skew, Begins begins, Choose choose)
    : range_(slices, skew, begins), choose_(std::move(choose)), facts_(range_.high()) {
  g_refusals = {};
  os::g_fault_hook = refuse;
  g_purge_age.store(kPurgeAge);
  g_arm_threshold_slices.store(1);
  if (begins == Begins::kUsedBefore) {
    for (uint32_t i = range_.low(); i < range_.high(); ++i) facts_[i].dirty_since = generation_;
  }
}

ArenaMachine::~ArenaMachine() {
  os::g_fault_hook = nullptr;
  g_arm_threshold_slices.store(UINT32_MAX);
  g_purge_age.store(kPurgeAge);
}

bool ArenaMachine::step() {
  g_refusals.refused_purges.clear();
  using Operation = void (ArenaMachine::*)();
  static constexpr Operation kOperations[] = {
      &ArenaMachine::take,      &ArenaMachine::take,       &ArenaMachine::take,
      &ArenaMachine::give,      &ArenaMachine::give,       &ArenaMachine::give_tail,
      &ArenaMachine::extend,    &ArenaMachine::new_generation, &ArenaMachine::purge_due,
      &ArenaMachine::purge_all, &ArenaMachine::change_refusals, &ArenaMachine::change_purge_age,
  };
  // The rare ones are a tenth of what is left to them.
  const uint32_t first = choose_(12);
  const uint32_t which = first >= 9 && choose_(4) != 0 ? choose_(8) : first;
  (this->*kOperations[which])();
  return error_.empty() && compare();
}

bool ArenaMachine::fail(const std::string& what) {
  if (error_.empty()) error_ = what;
  return false;
}

void ArenaMachine::take() {
  uint32_t slices = choose_(4) != 0 ? 1 + choose_(8) : 1 + choose_(kMostSlices);
  size_t alignment = choose_(4) != 0 ? kSliceBytes : kSliceBytes << choose_(9);
  bool zero = false;
  bool must = must_find(slices, alignment);
  Slice* span = range_.arena().take({slices}, alignment, &zero);
  if (span == nullptr) {
    if (must) fail("take found nothing though a run was free");
    return;
  }
  uint32_t first = range_.index_of(span);
  if (first < range_.low() || first + slices > range_.high()) return void(fail("take left the range"));
  if (span->start != range_.memory(first)) return void(fail("take gave a span with a wrong start"));
  if (reinterpret_cast<uintptr_t>(span->start) % alignment != 0) return void(fail("take ignored the alignment"));
  bool clean = true;
  for (uint32_t i = first; i < first + slices; ++i) {
    if (facts_[i].used) return void(fail("take gave a slice that is in use"));
    clean = clean && facts_[i].dirty_since == 0;
  }
  if (zero != clean) return void(fail(zero ? "take said zero of a dirty slice" : "take said dirty of clean slices"));
  if (zero && !is_zero(first, slices)) return void(fail("take said zero, and it is not"));
  use_run(first, slices);
  spans_[first] = {slices, next_mark_};
  write_marks(first, slices, next_mark_++);
}

// A run that take() cannot miss: with room for any alignment, and of a length that lies beyond the bin of the wanted
// one, as bins of mixed lengths are not searched to their ends. While the OS refuses commits only known ends count.
bool ArenaMachine::must_find(uint32_t slices, size_t alignment) const {
  if (g_refusals.commit) return false;
  size_t needed = slices + (alignment >> kSliceShift) - 1;
  if (needed >= 64) needed += needed / 8 + 1;
  size_t run = 0;
  for (uint32_t i = range_.low(); i < range_.high(); ++i) {
    run = facts_[i].used ? 0 : run + 1;
    if (run >= needed) return true;
  }
  return false;
}

void ArenaMachine::give() {
  auto at = any_span();
  if (at == spans_.end()) return;
  auto [first, span] = *at;
  if (!has_marks(first, span.slices, span.mark)) return void(fail("a span in use has lost its contents"));
  bool clean = choose_(8) == 0;
  if (clean) os::purge(range_.memory(first), size_t{span.slices} << kSliceShift);
  if (!g_refusals.refused_purges.empty()) clean = false;
  spans_.erase(at);
  range_.arena().give(range_.slice(first), clean);
  free_run(first, span.slices, !clean);
}

void ArenaMachine::give_tail() {
  auto at = any_span();
  if (at == spans_.end() || at->second.slices < 2) return;
  uint32_t first = at->first, slices = at->second.slices;
  uint32_t keep = 1 + choose_(slices - 1);
  range_.arena().give_tail(range_.slice(first), {keep});
  free_run(first + keep, slices - keep, true);
  at->second.slices = keep;
}

void ArenaMachine::extend() {
  auto at = any_span();
  if (at == spans_.end()) return;
  uint32_t first = at->first, slices = at->second.slices;
  uint32_t more = 1 + choose_(8);
  bool possible = first + slices + more <= range_.high();
  for (uint32_t i = first + slices; possible && i < first + slices + more; ++i) possible = !facts_[i].used;
  bool extended = range_.arena().extend(range_.slice(first), {slices + more});
  if (extended && !possible) return void(fail("extend took a slice that is in use"));
  if (!extended && possible && !g_refusals.commit) return void(fail("extend refused free slices"));
  if (!extended) return;
  use_run(first + slices, more);
  write_marks(first + slices, more, at->second.mark);
  at->second.slices += more;
}

void ArenaMachine::new_generation() {
  begin_generation();
  ++generation_;
}

void ArenaMachine::purge_due() {
  // What was refused is tried again by passes at doubling distances.
  if (has_refused_ && --passes_to_retry_ == 0) {
    retry_distance_ = std::min(2 * retry_distance_, kLastRetry);
    passes_to_retry_ = retry_distance_;
    retry_refused();
  }
  bool remains = range_.arena().purge_due();
  purged(false);
  if (!has_refused_) retry_distance_ = passes_to_retry_ = kPurgeAge;
  bool dirty = false, due_one_day = false;
  for (const SliceFacts& fact : facts_) {
    dirty = dirty || fact.dirty_since != 0;
    due_one_day = due_one_day || (fact.dirty_since != 0 && fact.refused == Refused::kNo);
  }
  if (remains && !dirty) fail("a pass is armed for nothing");
  if (!remains && due_one_day) fail("a pass with memory left to purge is not armed");
}

void ArenaMachine::purge_all() {
  retry_refused();
  range_.arena().purge_all();
  ++generation_;  // a forced purge ends it
  purged(true);
}

void ArenaMachine::retry_refused() {
  has_refused_ = false;
  for (SliceFacts& fact : facts_) {
    if (fact.refused == Refused::kYes) fact.refused = Refused::kTriedAgain;
  }
}

void ArenaMachine::change_refusals() {
  g_refusals.commit = choose_(3) == 0;
  g_refusals.purge_one_in = choose_(3);
}

void ArenaMachine::change_purge_age() {
  purge_age_ = choose_(2) == 0 ? kPurgeAge : 0;
  g_purge_age.store(static_cast<uint8_t>(purge_age_));
}

// What a pass has done to the free slices: those that were due are clean, and zero, unless the OS refused.
void ArenaMachine::purged(bool all) {
  for (uint32_t i = range_.low(); i < range_.high(); ++i) {
    SliceFacts& fact = facts_[i];
    if (fact.dirty_since == 0 || fact.refused == Refused::kYes) continue;
    bool due = all || fact.refused == Refused::kTriedAgain || generation_ >= fact.dirty_since + purge_age_;
    if (!due) continue;
    const char* memory = range_.memory(i);
    bool refused = false;
    for (auto [start, bytes] : g_refusals.refused_purges) {
      refused = refused || (memory >= start && memory < start + bytes);
    }
    if (!refused) fact.dirty_since = 0;
    fact.refused = refused ? Refused::kYes : Refused::kNo;
    has_refused_ = has_refused_ || refused;
    if (!refused && !is_zero(i, 1)) fail("a purged slice is not zero");
  }
}

void ArenaMachine::free_run(uint32_t first, uint32_t slices, bool dirty) {
  for (uint32_t i = first; i < first + slices; ++i) facts_[i] = {false, dirty ? generation_ : 0, Refused::kNo};
}

void ArenaMachine::use_run(uint32_t first, uint32_t slices) {
  for (uint32_t i = first; i < first + slices; ++i) facts_[i] = {true, 0, Refused::kNo};
}

// Marks stand at both ends of every slice: neighbours that overwrite each other are caught, and little is touched.
void ArenaMachine::write_marks(uint32_t first, uint32_t slices, uint32_t mark) {
  for (uint32_t i = first; i < first + slices; ++i) {
    memcpy(range_.memory(i), &mark, sizeof(mark));
    memcpy(range_.memory(i + 1) - sizeof(mark), &mark, sizeof(mark));
  }
}

bool ArenaMachine::has_marks(uint32_t first, uint32_t slices, uint32_t mark) const {
  for (uint32_t i = first; i < first + slices; ++i) {
    if (memcmp(range_.memory(i), &mark, sizeof(mark)) != 0) return false;
    if (memcmp(range_.memory(i + 1) - sizeof(mark), &mark, sizeof(mark)) != 0) return false;
  }
  return true;
}

bool ArenaMachine::is_zero(uint32_t first, uint32_t slices) const { return has_marks(first, slices, 0); }

std::map<uint32_t, ArenaMachine::Span>::iterator ArenaMachine::any_span() {
  if (spans_.empty()) return spans_.end();
  auto at = spans_.lower_bound(range_.low() + choose_(range_.high() - range_.low()));
  return at == spans_.end() ? spans_.begin() : at;
}

bool ArenaMachine::compare() {
  if (!range_.arena().is_valid()) return fail("the arena says that it is not valid");
  size_t used = 0, dirty = 0;
  for (const SliceFacts& fact : facts_) {
    used += fact.used;
    dirty += fact.dirty_since != 0;
  }
  Arena::Usage usage = range_.arena().usage();
  if (usage.used_bytes != used << kSliceShift) return fail("the arena counts other slices in use");
  if (usage.dirty_bytes != dirty << kSliceShift) return fail("the arena counts other dirty slices");
  if (usage.reserved_bytes != size_t{range_.high() - range_.low()} << kSliceShift) return fail("the range has changed");
  if (usage.used_bytes > usage.committed_bytes) return fail("more in use than committed");
  return true;
}

}  // namespace ebb::test
