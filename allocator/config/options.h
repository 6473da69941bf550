// Options of the process: read once from the environment, changed by ebb_option_set. Reading is a relaxed
// atomic load and safe everywhere; setting is safe from any thread and takes effect at the next decision.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ebb {

enum class Option : uint8_t {
#define EBB_OPTION(name, standard, low, high, doc) k_##name,
#define EBB_OPTION_WORD(option, word, value)
#include "config/options.def"
#undef EBB_OPTION
#undef EBB_OPTION_WORD
  kCount,
};

// What the words of options stand for: word::thp_full.
namespace word {
#define EBB_OPTION(name, standard, low, high, doc)
#define EBB_OPTION_WORD(option, word, value) constexpr int64_t option##_##word = value;
#include "config/options.def"
#undef EBB_OPTION
#undef EBB_OPTION_WORD
}  // namespace word

extern std::atomic<int64_t> g_options[static_cast<size_t>(Option::kCount)];

inline int64_t option(Option which) {
  return g_options[static_cast<size_t>(which)].load(std::memory_order_relaxed);
}

struct OptionInfo {
  const char* name;
  int64_t standard, low, high;
  const char* doc;
};

// Facts of option number `index`; index < Option::kCount.
const OptionInfo& option_info(size_t index);

// Number of the option with this name, or -1.
int option_find(const char* name);

// Sets an option; false when `value` is outside its range (then nothing changes).
bool option_set(size_t index, int64_t value);

// Parses a decimal number or one of the option's words; false for anything else.
bool option_parse(size_t index, const char* text, int64_t* value);

// Reads EBB_<NAME> for every option from `environment` (an environ array, may be null). A value that cannot
// be used is passed to `complain` (may be null) with the variable's name and leaves the default.
void options_load(char** environment, void (*complain)(const char* variable, const char* value));

}  // namespace ebb
