// Argument parsing without allocation; see arguments.h.
#include "common/arguments.h"

#include <unistd.h>
#include <string_view>

#include "common/exits.h"
#include "common/text.h"

namespace tidemark {
namespace {

void add_range(Text& text, const Option& option) {
  if (option.words.empty()) {
    text.add("a whole number from ").add_unsigned(option.minimum).add(" to ").add_unsigned(option.maximum);
    return;
  }
  text.add("one of ");
  for (std::size_t index = 0; index < option.words.size(); ++index) {
    text.add(index == 0 ? "" : ", ").add(option.words[index]);
  }
}

[[noreturn]] void print_help(const char* program, const char* summary, std::span<const Option> options) {
  Text text;
  text.add("usage: ").add(program).add(" [--key value]...\n").add(summary).add("\n\n");
  for (const Option& option : options) {
    text.add("  ").add(option.name).add("  ").add(option.help).add("; ");
    add_range(text, option);
    text.add("; default ");
    if (option.words.empty()) {
      text.add_unsigned(*option.value);
    } else {
      text.add(option.words[*option.value]);
    }
    text.add("\n");
  }
  text.add("  --help  print this\n");
  _exit(write_all(STDOUT_FILENO, text.view()) ? 0 : kExitBroken);
}

// False when `text` is not a decimal number that fits.
bool parse_unsigned(std::string_view text, std::uint64_t& value) {
  if (text.empty()) return false;
  std::uint64_t sum = 0;
  for (const char byte : text) {
    if (byte < '0' || byte > '9') return false;
    if (__builtin_mul_overflow(sum, std::uint64_t{10}, &sum)) return false;
    if (__builtin_add_overflow(sum, static_cast<std::uint64_t>(byte - '0'), &sum)) return false;
  }
  value = sum;
  return true;
}

bool parse_value(const Option& option, std::string_view text) {
  if (!option.words.empty()) {
    for (std::size_t index = 0; index < option.words.size(); ++index) {
      if (text == option.words[index]) {
        *option.value = index;
        return true;
      }
    }
    return false;
  }
  std::uint64_t value = 0;
  if (!parse_unsigned(text, value) || value < option.minimum || value > option.maximum) return false;
  *option.value = value;
  return true;
}

const Option* find(std::span<const Option> options, std::string_view name) {
  for (const Option& option : options) {
    if (name == option.name) return &option;
  }
  return nullptr;
}

}  // namespace

void parse_arguments(const char* program, const char* summary, std::span<const Option> options, int argc, char** argv) {
  set_program_name(program);
  for (int index = 1; index < argc; index += 2) {
    const std::string_view name = argv[index];
    if (name == "--help") print_help(program, summary, options);
    const Option* option = find(options, name);
    Text text;
    if (option == nullptr) {
      text.add("there is no option ").add_json_string(name);
      fail_usage(text.view());
    }
    if (index + 1 == argc) {
      text.add(name).add(" needs ");
      add_range(text, *option);
      fail_usage(text.view());
    }
    if (!parse_value(*option, argv[index + 1])) {
      text.add(name).add(" needs ");
      add_range(text, *option);
      text.add(", not ").add_json_string(argv[index + 1]);
      fail_usage(text.view());
    }
  }
}

}  // namespace tidemark
