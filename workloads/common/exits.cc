// Sentences and exit codes; see exits.h.
#include "common/exits.h"

#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "common/text.h"

namespace tidemark {
namespace {

const char* program_name = "workload";

// Set by the thread that ends the process, so that several which fail at once say one sentence.
std::atomic_flag ending;

[[noreturn]] void end_with(int code, const Text& sentence) {
  while (ending.test_and_set()) pause();
  // Standard error is the last resort: when it is gone too there is nobody left to tell.
  (void)write_all(STDERR_FILENO, sentence.view());
  _exit(code);
}

void begin(Text& text) { text.add(program_name).add(": "); }

}  // namespace

void set_program_name(const char* name) { program_name = name; }

void fail_broken(std::string_view what) {
  Text text;
  begin(text);
  end_with(kExitBroken, text.add(what).add(".\n"));
}

void fail_broken_errno(std::string_view what) {
  const int error = errno;
  const char* reason = strerrordesc_np(error);
  Text text;
  begin(text);
  text.add(what).add(": ").add(reason != nullptr ? reason : "unknown error");
  end_with(kExitBroken, text.add(".\n"));
}

void fail_usage(std::string_view what) {
  Text text;
  begin(text);
  text.add(what).add("; see ").add(program_name).add(" --help");
  end_with(kExitUsage, text.add(".\n"));
}

void fail_contents(const void* block, std::size_t size, std::size_t offset, std::uint64_t expected,
                   std::uint64_t found) {
  Text text;
  begin(text);
  text.add("the block at 0x").add_hex16(reinterpret_cast<std::uintptr_t>(block));
  text.add(" of ").add_unsigned(size).add(" bytes holds 0x").add_hex16(found);
  text.add(" at offset ").add_unsigned(offset).add(" where 0x").add_hex16(expected);
  end_with(kExitCorruption, text.add(" was written: the allocator gave the memory away or wrote to it.\n"));
}

void fail_corruption(std::string_view what) {
  Text text;
  begin(text);
  end_with(kExitCorruption, text.add(what).add(".\n"));
}

}  // namespace tidemark
