// Pairs of inherited descriptors named by an environment variable, as `<first>,<second>`.
//
// Called by the session and the counter control, in set-up.
#pragma once

namespace tidemark {

struct DescriptorPair {
  int first = -1;
  int second = -1;
  bool present() const { return first >= 0; }
};

// Absent pair when the variable is not set; a malformed value or a descriptor that is not open ends the
// process with exit code 2.
DescriptorPair inherited_descriptors(const char* variable);

}  // namespace tidemark
