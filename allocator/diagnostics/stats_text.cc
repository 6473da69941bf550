#include "diagnostics/stats_text.h"

#include "config/options.h"
#include "stats/counters.h"

namespace ebb {
namespace {

constexpr size_t kLineBytes = 200;

struct Figure {
  const char* name;
  size_t Snapshot::*value;
};

constexpr Figure kFigures[] = {
    {"live_bytes", &Snapshot::live_bytes},           {"live_blocks", &Snapshot::live_blocks},
    {"resident_bytes", &Snapshot::resident_bytes},   {"dirty_bytes", &Snapshot::dirty_bytes},
    {"committed_bytes", &Snapshot::committed_bytes}, {"reserved_bytes", &Snapshot::reserved_bytes},
    {"metadata_bytes", &Snapshot::metadata_bytes},   {"span_bytes", &Snapshot::span_bytes},
    {"hole_bytes", &Snapshot::hole_bytes},           {"page_count", &Snapshot::page_count},
    {"large_count", &Snapshot::large_blocks},        {"large_bytes", &Snapshot::large_bytes},
    {"thread_count", &Snapshot::thread_count},
};

// `"name":value`, with a comma in front of all but the first of an object.
void member(Text* out, bool* first, const char* name, uint64_t value) {
  out->text(*first ? "\"" : ",\"").text(name).text("\":").number(value);
  *first = false;
}

void write_classes(Text* out, const Snapshot& snapshot) {
  bool first_class = true;
  for (size_t cls = 0; cls < kClassCount; ++cls) {
    const ClassUse& use = snapshot.classes[cls];
    if (use.pages == 0) continue;
    out->text(first_class ? "{" : ",{");
    first_class = false;
    bool first = true;
    member(out, &first, "block_bytes", class_bytes(cls));
    member(out, &first, "pages", use.pages);
    member(out, &first, "live_blocks", use.live_blocks);
    member(out, &first, "free_blocks", use.free_blocks);
    out->text("}");
  }
}

class LineWriter {
 public:
  explicit LineWriter(const LineSink& sink) : sink_(sink), line_(buffer_, sizeof(buffer_)) {}
  Text& line() { return line_; }
  void end() {
    sink_.print(buffer_, sink_.arg);
    line_.clear();
  }

 private:
  const LineSink& sink_;
  char buffer_[kLineBytes];
  Text line_;
};

void print_class(LineWriter* out, size_t cls, const ClassUse& use) {
  out->line().padded(class_bytes(cls), 8).padded(use.pages, 10).padded(use.live_blocks, 12);
  out->line().padded(use.free_blocks, 12).size(use.live_blocks * class_bytes(cls), 12);
  out->end();
}

void print_counter(LineWriter* out, size_t index) {
  uint64_t value = counted(static_cast<Counter>(index));
  if (value == 0) return;
  const CounterInfo& info = counter_info(index);
  out->line().text(info.name).to_column(18).padded(value, 14).text(" ").text(info.unit).text(", ").text(info.doc);
  out->end();
}

}  // namespace

void write_stats_json(Text* out, const Snapshot& snapshot) {
  bool first = true;
  out->text("{");
  for (const Figure& figure : kFigures) member(out, &first, figure.name, snapshot.*figure.value);
  out->text(",\"classes\":[");
  write_classes(out, snapshot);
  out->text("],\"counters\":{");
  first = true;
  for (size_t i = 0; i < static_cast<size_t>(Counter::kCount); ++i) {
    member(out, &first, counter_info(i).name, counted(static_cast<Counter>(i)));
  }
  out->text("},\"options\":{");
  first = true;
  for (size_t i = 0; i < static_cast<size_t>(Option::kCount); ++i) {
    member(out, &first, option_info(i).name, static_cast<uint64_t>(option(static_cast<Option>(i))));
  }
  out->text("},\"version\":\"" EBB_VERSION "\"}");
}

void write_stats_lines(const LineSink& sink, const Snapshot& snapshot) {
  LineWriter out(sink);
  out.line().text("ebb " EBB_VERSION ": live ").size(snapshot.live_bytes, 0).text(" in ").number(snapshot.live_blocks);
  out.line().text(" blocks, resident ").size(snapshot.resident_bytes, 0).text(", ").number(snapshot.thread_count);
  out.line().text(" threads");
  out.end();
  for (const Figure& figure : kFigures) {
    out.line().text(figure.name).to_column(18).padded(snapshot.*figure.value, 14);
    out.end();
  }
  out.line().text("   block     pages        live        free    live size");
  out.end();
  for (size_t cls = 0; cls < kClassCount; ++cls) {
    if (snapshot.classes[cls].pages != 0) print_class(&out, cls, snapshot.classes[cls]);
  }
  for (size_t i = 0; i < static_cast<size_t>(Counter::kCount); ++i) print_counter(&out, i);
}

void write_stats_xml(const LineSink& sink, const Snapshot& snapshot) {
  LineWriter out(sink);
  out.line().text("<malloc version=\"1\">");
  out.end();
  out.line().text("<heap nr=\"0\"><sizes>");
  out.end();
  size_t free_blocks = 0, free_bytes = 0;
  for (size_t cls = 0; cls < kClassCount; ++cls) {
    size_t count = snapshot.classes[cls].free_blocks;
    if (count == 0) continue;
    free_blocks += count;
    free_bytes += count * class_bytes(cls);
    out.line().text("<size from=\"").number(cls == 0 ? 1 : class_bytes(cls - 1) + 1).text("\" to=\"");
    out.line().number(class_bytes(cls)).text("\" total=\"").number(count * class_bytes(cls)).text("\" count=\"");
    out.line().number(count).text("\"/>");
    out.end();
  }
  out.line().text("</sizes></heap>");
  out.end();
  out.line().text("<total type=\"rest\" count=\"").number(free_blocks);
  out.line().text("\" size=\"").number(free_bytes).text("\"/>");
  out.end();
  out.line().text("<system type=\"current\" size=\"").number(snapshot.span_bytes + snapshot.dirty_bytes).text("\"/>");
  out.end();
  out.line().text("<aspace type=\"total\" size=\"").number(snapshot.reserved_bytes).text("\"/>");
  out.end();
  out.line().text("</malloc>");
  out.end();
}

}  // namespace ebb
