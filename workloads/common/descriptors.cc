// Parsing `<first>,<second>`; see descriptors.h.
#include "common/descriptors.h"

#include <fcntl.h>
#include <cstdlib>

#include "common/exits.h"
#include "common/text.h"

namespace tidemark {
namespace {

// Reads digits up to `stop`, which it requires; -1 when there are none or too many.
int parse_descriptor(const char*& next, char stop) {
  int value = 0;
  int digits = 0;
  for (; *next >= '0' && *next <= '9' && digits < 9; ++next, ++digits) value = value * 10 + (*next - '0');
  if (digits == 0 || *next != stop) return -1;
  if (stop != '\0') ++next;
  return value;
}

bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) != -1; }

}  // namespace

DescriptorPair inherited_descriptors(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr) return {};
  const char* next = value;
  DescriptorPair pair;
  pair.first = parse_descriptor(next, ',');
  if (pair.first >= 0) pair.second = parse_descriptor(next, '\0');
  if (pair.first < 0 || pair.second < 0 || !is_open(pair.first) || !is_open(pair.second)) {
    Text text;
    text.add(variable).add(" must name two open descriptors as in \"3,4\", not ").add_json_string(value);
    fail_usage(text.view());
  }
  return pair;
}

}  // namespace tidemark
