// Slices counted and converted to bytes without loss.
#include "base/units.h"

#include <gtest/gtest.h>

namespace ebb {
namespace {

TEST(Units, SlicesCoverTheBytesAndNoMore) {
  EXPECT_EQ(SliceCount::from_bytes_up(0).value, 0u);
  EXPECT_EQ(SliceCount::from_bytes_up(1).value, 1u);
  EXPECT_EQ(SliceCount::from_bytes_up(kSliceBytes).value, 1u);
  EXPECT_EQ(SliceCount::from_bytes_up(kSliceBytes + 1).value, 2u);
  for (size_t bytes = 1; bytes < 40 * kSliceBytes; bytes += 4099) {
    SliceCount count = SliceCount::from_bytes_up(bytes);
    EXPECT_GE(count.bytes(), bytes);
    EXPECT_LT(count.bytes() - bytes, kSliceBytes);
  }
}

TEST(Units, ManySlicesDoNotOverflowTheirBytes) {
  SliceCount most{UINT32_MAX};
  EXPECT_EQ(most.bytes() / kSliceBytes, size_t{UINT32_MAX});
  EXPECT_EQ(SliceCount::from_bytes_up(most.bytes()), most);
}

}  // namespace
}  // namespace ebb
