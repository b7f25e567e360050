#include "parallel/checkpoint/index_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plait::parallel {
namespace {

// A box for each piece would take 14 GB, of a file of half a megabyte.
TEST(ParseIndex, ManyDimensionsOfManyPieces) {
  constexpr int kMany = 30000;
  const std::string contents = absl::StrCat(
      R"({"step": 1, "ranks": 1, "chunk_bytes": 8, "shards": [{"bytes": 8, "checksums_crc32": 0}], "texts": {},)",
      R"("integers": {}, "tensors": [{"group": "g", "name": "w", "dtype": "float32", "shape": [)",
      absl::StrJoin(std::vector<int>(kMany, 1), ","), "]}]}");
  PieceTables tables = {.columns = 4, .pieces = {}, .boxes = {}};
  for (int i = 0; i < kMany; ++i) tables.pieces.insert(tables.pieces.end(), {0, 0, 0, 1});
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_DATA, &before), 0);
  const rlimit less = {rlim_t{1} << 30, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &less), 0);
  const absl::Status status = ParseIndex(contents, tables).status();
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &before), 0);
  EXPECT_EQ(status.message(), "its parts are inconsistent: g/w: 30000 dimensions; expected at most 32");
}

}  // namespace
}  // namespace plait::parallel
