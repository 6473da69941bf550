// The ways a workload ends early: one sentence on standard error, then an exit code.
//
// Called from anywhere, any thread. None of these returns, allocates or runs exit handlers: a process
// whose heap is known to be corrupt must not walk it again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tidemark {

// The workload could not run to its end: no memory, no thread, nobody reading its events.
constexpr int kExitBroken = 1;
// An argument or an environment variable makes no sense.
constexpr int kExitUsage = 2;
// A block did not hold what was written to it, or was not what was asked for.
constexpr int kExitCorruption = 3;

// The name that begins every sentence; set once by the session or the parser before threads start.
void set_program_name(const char* name);

[[noreturn]] void fail_broken(std::string_view what);
// As fail_broken, with errno's text behind it.
[[noreturn]] void fail_broken_errno(std::string_view what);
[[noreturn]] void fail_usage(std::string_view what);

// `offset` is where in the block of `size` bytes the first wrong byte stands.
[[noreturn]] void fail_contents(const void* block, std::size_t size, std::size_t offset, std::uint64_t expected,
                                std::uint64_t found);
[[noreturn]] void fail_corruption(std::string_view what);

}  // namespace tidemark
