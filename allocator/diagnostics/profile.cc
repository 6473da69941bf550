#include "diagnostics/profile.h"

#include <cstring>

#include "base/bits.h"
#include "base/units.h"
#include "config/options.h"
#include "heap/process.h"
#include "heap/sample_list.h"
#include "heap/sampling.h"
#include "os/message.h"
#include "os/os.h"

namespace ebb {

constinit bool g_profile_at_exit = false;

namespace {

// Text on its way to a file. After a failure nothing more is written.
class FileText {
 public:
  explicit FileText(int fd) : fd_(fd) {}

  FileText& text(const char* s) {
    for (; *s != '\0'; ++s) put(*s);
    return *this;
  }
  FileText& number(uint64_t value, unsigned base = 10) {
    char digits[20];
    int count = 0;
    do {
      digits[count++] = "0123456789abcdef"[value % base];
      value /= base;
    } while (value != 0);
    while (count > 0) put(digits[--count]);
    return *this;
  }
  void file(const char* path) {
    flush();
    int from = os::open_to_read(path);
    if (from < 0) return fail(-from);
    for (long got; error_ == 0 && (got = os::read_some(from, buffer_, sizeof(buffer_))) != 0;) {
      if (got < 0) {
        fail(static_cast<int>(-got));
      } else {
        length_ = static_cast<size_t>(got);
        flush();
      }
    }
    os::close_file(from);
  }
  int end() {
    flush();
    return error_;
  }

 private:
  void put(char c) {
    if (length_ == sizeof(buffer_)) flush();
    buffer_[length_++] = c;
  }
  void flush() {
    if (length_ != 0 && error_ == 0) error_ = os::write_whole(fd_, buffer_, length_);
    length_ = 0;
  }
  void fail(int error) {
    if (error_ == 0) error_ = error;
  }

  int fd_;
  int error_ = 0;
  size_t length_ = 0;
  char buffer_[4096];
};

// A copy of the live samples, in memory of its own.
class SampleCopy {
 public:
  explicit SampleCopy(uint32_t session) {
    // Others allocate meanwhile, so the next try gets some room more.
    size_t words = samples_copy(session, nullptr, 0);
    for (size_t room = words; words > room || data_ == nullptr;) {
      room = words + words / 8 + 512;
      if (!map(room * sizeof(uint64_t))) return;
      words = samples_copy(session, data_, room);
    }
    end_ = data_ + words;
  }
  ~SampleCopy() { unmap(); }
  SampleCopy(const SampleCopy&) = delete;
  SampleCopy& operator=(const SampleCopy&) = delete;

  bool is_whole() const { return end_ != nullptr; }

  // visit(size_bytes, stack, depth) for each.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const uint64_t* at = data_; at < end_; at += 2 + at[1]) visit(at[0], at + 2, static_cast<size_t>(at[1]));
  }

 private:
  bool map(size_t bytes) {
    unmap();
    bytes_ = align_up(bytes, kSliceBytes);
    data_ = static_cast<uint64_t*>(os::reserve(bytes_, kSliceBytes));
    if (data_ != nullptr && os::commit(data_, bytes_)) return true;
    unmap();
    return false;
  }
  void unmap() {
    if (data_ != nullptr) os::release(data_, bytes_);
    data_ = nullptr;
  }

  uint64_t* data_ = nullptr;
  const uint64_t* end_ = nullptr;
  size_t bytes_ = 0;
};

void write_sample(FileText* out, uint64_t size, const uint64_t* stack, size_t depth) {
  out->text("1: ").number(size).text(" [1: ").number(size).text("] @");
  for (size_t i = 0; i < depth; ++i) {
    // Readers take one off the callers' return addresses, to be inside the call, but not off the first.
    out->text(" 0x").number(i == 0 ? stack[i] - 1 : stack[i], 16);
  }
  out->text("\n");
}

// ---- the profile that is written at exit ----

constexpr size_t kMostPath = 4096;
constinit char g_path[kMostPath] = {};
constinit int g_process = 0;

// The value of EBB_PROFILE_FILE; null when it is not set.
const char* profile_path_asked_for() {
  constexpr char kName[] = "EBB_PROFILE_FILE=";
  for (char** entry = os::environment(); entry != nullptr && *entry != nullptr; ++entry) {
    if (strncmp(*entry, kName, sizeof(kName) - 1) == 0) return *entry + sizeof(kName) - 1;
  }
  return nullptr;
}

// Puts the process's number in for each %p; false when the result is too long.
bool expand_path(const char* pattern, char* path) {
  size_t length = 0;
  for (; *pattern != '\0'; ++pattern) {
    char digits[20];
    int count = 0;
    if (pattern[0] == '%' && pattern[1] == 'p') {
      ++pattern;
      for (int number = os::process_id(); number != 0; number /= 10) digits[count++] = static_cast<char>('0' + number % 10);
    } else {
      digits[count++] = *pattern;
    }
    for (; count > 0; path[length++] = digits[--count]) {
      if (length == kMostPath - 1) return false;
    }
  }
  path[length] = '\0';
  return true;
}

void complain(const char* path, int error) {
  Message message;
  message.text("ebb: the heap profile can't be written to ").text(path).text(": error ");
  message.number(static_cast<uint64_t>(error)).text("; give EBB_PROFILE_FILE another name").print();
}

}  // namespace

bool profile_start(size_t mean_bytes) {
  if (!process_start()) return false;
  os::prepare_call_stacks();
  sampling_start(mean_bytes);
  return true;
}

int profile_write(int fd) {
  constexpr int kNoMemory = 12;  // ENOMEM, the same on every Linux
  size_t mean;
  uint32_t session = sampling_session(&mean);
  SampleCopy samples(session);
  if (!samples.is_whole()) return kNoMemory;
  uint64_t count = 0, bytes = 0;
  samples.for_each([&](uint64_t size, const uint64_t*, size_t) { ++count, bytes += size; });
  FileText out(fd);
  out.text("heap profile: ").number(count).text(": ").number(bytes);
  out.text(" [").number(count).text(": ").number(bytes).text("] @ heap_v2/").number(max_of<size_t>(mean, 1)).text("\n");
  samples.for_each([&](uint64_t size, const uint64_t* stack, size_t depth) { write_sample(&out, size, stack, depth); });
  out.text("\nMAPPED_LIBRARIES:\n");
  out.file("/proc/self/maps");
  return out.end();
}

void profile_start_from_options() {
  if (!process_start() || os::is_privileged_execution()) return;
  size_t mean = static_cast<size_t>(option(Option::k_profile_interval_kib)) * KiB;
  if (mean == 0) return;
  const char* path = profile_path_asked_for();
  if (path != nullptr && *path != '\0') {
    size_t length = strlen(path);
    if (length < kMostPath) {
      memcpy(g_path, path, length);
      g_process = os::process_id();
      g_profile_at_exit = true;
    } else {
      complain("a name of that length", 36);  // ENAMETOOLONG
    }
  }
  profile_start(mean);
}

void profile_write_at_exit() {
  // A fork child that ends by exit would write over its parent's.
  bool names_process = strstr(g_path, "%p") != nullptr;
  if (!names_process && os::process_id() != g_process) return;
  char path[kMostPath];
  if (!expand_path(g_path, path)) return complain(g_path, 36);
  int fd = os::open_to_write(path);
  int error = fd < 0 ? -fd : profile_write(fd);
  if (fd >= 0) os::close_file(fd);
  if (error != 0) complain(path, error);
}

}  // namespace ebb
