#include "config/options.h"

#include <cstring>

namespace ebb {

constinit std::atomic<int64_t> g_options[static_cast<size_t>(Option::kCount)] = {
#define EBB_OPTION(name, standard, low, high, doc) standard,
#define EBB_OPTION_WORD(option, word, value)
#include "config/options.def"
#undef EBB_OPTION
#undef EBB_OPTION_WORD
};

namespace {

constexpr OptionInfo kInfo[] = {
#define EBB_OPTION(name, standard, low, high, doc) {#name, standard, low, high, doc},
#define EBB_OPTION_WORD(option, word, value)
#include "config/options.def"
#undef EBB_OPTION
#undef EBB_OPTION_WORD
};

struct Word {
  Option option;
  const char* word;
  int64_t value;
};

constexpr Word kWords[] = {
#define EBB_OPTION(name, standard, low, high, doc)
#define EBB_OPTION_WORD(option, word, value) {Option::k_##option, #word, value},
#include "config/options.def"
#undef EBB_OPTION
#undef EBB_OPTION_WORD
};

constexpr bool defaults_in_range() {
  for (const OptionInfo& info : kInfo) {
    if (info.standard < info.low || info.standard > info.high) return false;
  }
  return true;
}
static_assert(defaults_in_range(), "every default lies within its option's range");

constexpr size_t kCount = static_cast<size_t>(Option::kCount);

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Matches "EBB_<NAME>=" at the start of `entry`; returns the value or null.
const char* match_variable(const char* entry, const char* name) {
  if (strncmp(entry, "EBB_", 4) != 0) return nullptr;
  entry += 4;
  for (; *name != '\0'; ++name, ++entry) {
    if (lower(*entry) != *name || (*entry >= 'a' && *entry <= 'z')) return nullptr;
  }
  return *entry == '=' ? entry + 1 : nullptr;
}

}  // namespace

const OptionInfo& option_info(size_t index) { return kInfo[index]; }

int option_find(const char* name) {
  for (size_t i = 0; i < kCount; ++i) {
    if (strcmp(kInfo[i].name, name) == 0) return static_cast<int>(i);
  }
  return -1;
}

bool option_set(size_t index, int64_t value) {
  if (value < kInfo[index].low || value > kInfo[index].high) return false;
  g_options[index].store(value, std::memory_order_relaxed);
  return true;
}

bool option_parse(size_t index, const char* text, int64_t* value) {
  for (const Word& word : kWords) {
    if (static_cast<size_t>(word.option) == index && strcmp(word.word, text) == 0) {
      *value = word.value;
      return true;
    }
  }
  if (*text == '\0') return false;
  int64_t number = 0;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9' || number > INT64_MAX / 10 - 9) return false;
    number = number * 10 + (*text - '0');
  }
  *value = number;
  return true;
}

void options_load(char** environment, void (*complain)(const char*, const char*)) {
  if (environment == nullptr) return;
  for (; *environment != nullptr; ++environment) {
    if (strncmp(*environment, "EBB_", 4) != 0) continue;
    for (size_t i = 0; i < kCount; ++i) {
      const char* text = match_variable(*environment, kInfo[i].name);
      if (text == nullptr) continue;
      int64_t value = 0;
      if ((!option_parse(i, text, &value) || !option_set(i, value)) && complain != nullptr) {
        complain(kInfo[i].name, text);
      }
    }
  }
}

}  // namespace ebb
