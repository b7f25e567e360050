#include "data/text/unicode_class.h"

#include <gtest/gtest.h>

namespace plait::data {
namespace {

// From the Unicode Character Database by hand; the whole table is compared in unicode_ranges_test.
TEST(ClassOf, KnownCharacters) {
  for (const std::int32_t c :
       {0x41, 0x7A, 0xAA, 0xE9, 0x416, 0x2B0, 0x1C5, 0x4E2D, 0xD55C, 0x10400, 0x20000}) {
    EXPECT_EQ(ClassOf(c), UnicodeClass::kLetter) << std::hex << c;
  }
  for (const std::int32_t c : {0x30, 0x39, 0xB2, 0xBD, 0x663, 0x2167, 0x1D7CE}) {
    EXPECT_EQ(ClassOf(c), UnicodeClass::kNumber) << std::hex << c;
  }
  for (const std::int32_t c :
       {0x9, 0xA, 0xB, 0xC, 0xD, 0x20, 0x85, 0xA0, 0x1680, 0x2003, 0x2028, 0x202F, 0x3000}) {
    EXPECT_EQ(ClassOf(c), UnicodeClass::kSpace) << std::hex << c;
  }
  // Among them what is taken for white space elsewhere: 0x1C (Python's isspace), 0x200B, 0xFEFF, 0x180E.
  for (const std::int32_t c :
       {-1, 0, 0x1C, 0x27, 0x5F, 0x7F, 0xD7, 0x301, 0x200B, 0xFEFF, 0x180E, 0x1F642, 0x10FFFF}) {
    EXPECT_EQ(ClassOf(c), UnicodeClass::kOther) << std::hex << c;
  }
}

TEST(UnicodeRanges, AscendAndAreDisjoint) {
  ASSERT_GT(internal::kUnicodeRangeCount, 800);
  std::int32_t end = -1;
  for (int i = 0; i < internal::kUnicodeRangeCount; ++i) {
    EXPECT_GT(internal::kUnicodeRanges[i].first, end);
    end = internal::kUnicodeRanges[i].last;
    EXPECT_GE(end, internal::kUnicodeRanges[i].first);
  }
}

}  // namespace
}  // namespace plait::data
