// `--key value` arguments of a workload.
//
// Called once, by main, before the session starts. A wrong argument ends the process with exit code 2
// and one sentence; `--help` prints the table of options and ends with 0.
#pragma once

#include <cstdint>
#include <span>

namespace tidemark {

// One option; made by integer() or choice().
struct Option {
  const char* name;      // with its dashes
  const char* help;      // one line, with the unit
  std::uint64_t* value;  // holds the default before, the answer after; a choice's index
  std::uint64_t minimum;
  std::uint64_t maximum;
  std::span<const char* const> words;  // empty for a whole number
};

constexpr Option integer(const char* name, std::uint64_t& value, std::uint64_t minimum, std::uint64_t maximum,
                         const char* help) {
  return {name, help, &value, minimum, maximum, {}};
}

constexpr Option choice(const char* name, std::uint64_t& value, std::span<const char* const> words, const char* help) {
  return {name, help, &value, 0, words.size() - 1, words};
}

inline constexpr const char* kNoYes[] = {"no", "yes"};

// `program` begins each sentence, `summary` the help.
void parse_arguments(const char* program, const char* summary, std::span<const Option> options, int argc, char** argv);

}  // namespace tidemark
