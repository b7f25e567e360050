// Pieces that do not cover their tensors exactly once, each with an error that says which.
#include "parallel/checkpoint/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plait::parallel {
namespace {

using ::testing::HasSubstr;

constexpr at::ScalarType kType = at::kFloat;

Offer Of(std::vector<TensorPiece> pieces, std::int64_t step = 1) { return {step, std::move(pieces)}; }

TensorPiece Piece(std::vector<std::int64_t> shape, std::int64_t begin, std::int64_t end,
                  const std::string& group = "model", const std::string& name = "x") {
  return {{group, name, kType, std::move(shape)}, begin, end};
}

TEST(Layout, PiecesInOrderAndTensorsAsTheyCome) {
  const absl::StatusOr<Layout> layout = MakeLayout({Of({Piece({4}, 2, 4, "b"), Piece({3}, 0, 0, "a")}),
                                                    Of({Piece({3}, 0, 3, "a"), Piece({4}, 0, 2, "b")})});
  ASSERT_TRUE(layout.ok()) << layout.status();
  ASSERT_EQ(layout->tensors.size(), 2u);
  EXPECT_EQ(PathOf(layout->tensors[0]), "b/x");
  const models::Box four{{0}, {4}}, three{{0}, {3}};
  const std::vector<LayoutPiece> expected = {
      {0, 1, {four, 0, 2}, 1}, {0, 0, {four, 2, 4}, 0}, {1, 1, {three, 0, 3}, 0}};
  EXPECT_EQ(layout->pieces, expected);
  EXPECT_EQ(layout->PiecesOf(1).size(), 2u);
  EXPECT_EQ(layout->ArrayOf(layout->pieces[1]), "b/x[2:4]");
  EXPECT_EQ(layout->TotalBytes(), 28);
}

TensorPiece BoxPiece(const std::vector<std::int64_t>& shape, const models::Box& box, std::int64_t begin,
                     std::int64_t end) {
  TensorPiece piece = Piece(shape, begin, end);
  piece.box = box;
  return piece;
}

TEST(Layout, BoxesAndRangesOfThem) {
  const models::Box left{{0, 0}, {4, 2}}, right{{0, 2}, {4, 6}};
  const absl::StatusOr<Layout> layout =
      MakeLayout({Of({BoxPiece({4, 8}, right, 5, 24)}), Of({BoxPiece({4, 8}, left, 0, 8)}),
                  Of({BoxPiece({4, 8}, right, 0, 5), BoxPiece({4, 8}, left, 3, 3)})});
  ASSERT_TRUE(layout.ok()) << layout.status();
  ASSERT_EQ(layout->pieces.size(), 3u);
  EXPECT_EQ(layout->ArrayOf(layout->pieces[0]), "model/x[0:4, 0:2][0:8]");
  EXPECT_EQ(layout->ArrayOf(layout->pieces[1]), "model/x[0:4, 2:8][0:5]");
  EXPECT_EQ(layout->ArrayOf(layout->pieces[2]), "model/x[0:4, 2:8][5:24]");
  EXPECT_EQ(layout->pieces[2].rank, 0);
  EXPECT_EQ(layout->TotalBytes(), 128);
}

// Contiguous boxes are ranges of the tensor, however they are given.
TEST(Layout, RowsNeedNoBoxes) {
  const absl::StatusOr<Layout> layout =
      MakeLayout({Of({BoxPiece({4, 8}, {{2, 0}, {2, 8}}, 0, 16)}),
                  Of({BoxPiece({4, 8}, {{1, 3}, {1, 5}}, 0, 5)}), Of({Piece({4, 8}, 0, 11)})});
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->ArrayOf(layout->pieces[1]), "model/x[11:16]");
  EXPECT_EQ(layout->ArrayOf(layout->pieces[2]), "model/x[16:32]");
}

TEST(Layout, ErrorsOfBoxesNameElementsAndRanks) {
  const models::Box left{{0, 0}, {4, 2}}, right{{0, 2}, {4, 6}};
  const std::vector<std::pair<std::vector<Offer>, std::string>> cases = {
      // An off-by-one, a missing last row, a missing column.
      {{Of({BoxPiece({4, 8}, left, 0, 8)}), Of({BoxPiece({4, 8}, {{0, 1}, {4, 7}}, 0, 28)})},
       "elements [0:4, 1:2] are on rank 0 and on rank 1"},
      {{Of({BoxPiece({4, 8}, left, 0, 8)}), Of({BoxPiece({4, 8}, {{0, 2}, {3, 6}}, 0, 18)})},
       "elements [3:4, 2:8] are on no rank"},
      {{Of({BoxPiece({4, 8}, left, 0, 8)}), Of({BoxPiece({4, 8}, {{0, 2}, {4, 5}}, 0, 20)})},
       "elements [0:4, 7:8] are on no rank"},
      // Of a box's flat shards one ends early, or begins early.
      {{Of({BoxPiece({4, 8}, left, 0, 8), BoxPiece({4, 8}, right, 0, 9)}),
        Of({BoxPiece({4, 8}, right, 10, 24)})},
       "elements [1:2, 5:6] are on no rank"},
      {{Of({BoxPiece({4, 8}, left, 0, 8), BoxPiece({4, 8}, right, 0, 9)}),
        Of({BoxPiece({4, 8}, right, 8, 24)})},
       "elements [1:2, 4:5] are on rank 0 and on rank 1"},
      // Swapped dimensions; a box beside a flat range of the whole.
      {{Of({BoxPiece({4, 8}, left, 0, 8)}), Of({BoxPiece({4, 8}, {{2, 0}, {6, 4}}, 0, 24)})},
       "rank 1 offers the box [2:8, 0:4] of float32 (4, 8)"},
      {{Of({Piece({4, 8}, 0, 32)}), Of({BoxPiece({4, 8}, left, 0, 8)})},
       "elements [0:4, 0:2] are on rank 0 and on rank 1"},
      {{Of({BoxPiece({4, 8}, {{0}, {4}}, 0, 4)})}, "rank 0 offers the box [0:4] of float32 (4, 8)"},
      {{Of({BoxPiece({4, 8}, {{}, {4, 8}}, 0, 4)})}, "rank 0 offers the box [] of float32 (4, 8)"},
      {{Of({BoxPiece({4, 8}, left, 0, 9)})}, "rank 0 offers elements [0, 9) of 8"},
  };
  for (const auto& [offers, part] : cases) {
    const absl::Status status = MakeLayout(offers).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("model/x"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
}

TEST(Layout, ScalarsAndEmptyTensorsNeedNoSpecialCase) {
  EXPECT_TRUE(MakeLayout({Of({Piece({}, 0, 1), Piece({0, 5}, 0, 0, "empty")})}).ok());
  EXPECT_FALSE(MakeLayout({Of({Piece({}, 0, 0)})}).ok());
}

// Every part of a group's name is a group.
TEST(Layout, PathsAreLimited) {
  const auto of_groups = [](std::size_t groups) {
    std::string group = "a";
    while (group.size() < 2 * groups - 1) group += "/a";
    return Piece({1}, 0, 1, group);
  };
  const auto of_bytes = [](std::size_t bytes) { return Piece({1}, 0, 1, std::string(bytes - 2, 'g')); };
  for (const TensorPiece& longest : {of_groups(kMostGroups), of_bytes(kLongestPath)})
    EXPECT_TRUE(MakeLayout({Of({longest})}).ok());
  const std::vector<std::pair<TensorPiece, std::string>> cases = {
      {of_groups(kMostGroups + 1), "/a/...\" cannot name a tensor: 131 bytes and 65 groups; expected"},
      {of_bytes(kLongestPath + 1), "ggg...\" cannot name a tensor: 1025 bytes and 1 groups; expected"},
      {of_groups(20000), "40001 bytes and 20000 groups; expected at most 1024 and 64"},
  };
  for (const auto& [piece, part] : cases) {
    const absl::Status offered = MakeLayout({Of({piece})}).status();
    EXPECT_EQ(offered.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(offered.message()), HasSubstr(part));
    EXPECT_LT(offered.message().size(), 200u);
    Layout read;
    read.tensors = {piece.tensor};
    EXPECT_EQ(CheckTensors(read), offered);
  }
}

TEST(Layout, ErrorsNameTensorElementsAndRanks) {
  TensorPiece other_type = Piece({4}, 2, 4);
  other_type.tensor.dtype = at::kBFloat16;
  const std::vector<std::pair<std::vector<Offer>, std::vector<std::string>>> cases = {
      {{Of({Piece({2, 3}, 0, 2)}), Of({Piece({2, 3}, 4, 6)})},
       {"model/x, float32 (2, 3)", "[2, 4) are on no rank"}},
      {{Of({Piece({6}, 1, 6)})}, {"[0, 1) are on no rank"}},
      {{Of({Piece({6}, 0, 5)})}, {"[5, 6) are on no rank"}},
      {{Of({}), Of({Piece({6}, 0, 0)})}, {"[0, 6) are on no rank"}},
      {{Of({Piece({6}, 0, 4)}), Of({Piece({6}, 3, 6)})}, {"[3, 4) are on rank 0 and on rank 1"}},
      {{Of({Piece({6}, 0, 6)}), Of({Piece({6}, 0, 6)})}, {"[0, 6) are on rank 0 and on rank 1"}},
      {{Of({Piece({6}, 0, 6), Piece({6}, 1, 2)})}, {"[1, 2) are on rank 0 and on rank 0"}},
      {{Of({Piece({6}, 0, 3)}), Of({Piece({3, 2}, 3, 6)})}, {"float32 (6) on rank 0", "(3, 2) on rank 1"}},
      {{Of({Piece({4}, 0, 2)}), Of({other_type})}, {"float32 (4) on rank 0", "bfloat16 (4) on rank 1"}},
      {{Of({}), Of({Piece({6}, 4, 7)})}, {"rank 1 offers elements [4, 7) of 6"}},
      {{Of({Piece({6}, 4, 3)})}, {"offers elements [4, 3) of 6"}},
      {{Of({Piece({-1, 3}, 0, 0)})}, {"(-1, 3) is not a valid shape"}},
      {{Of({Piece({std::int64_t{1} << 40, std::int64_t{1} << 40}, 0, 0)})}, {"is not a valid shape"}},
      {{Of({Piece({1}, 0, 1, "model", "a/b")})}, {"\"model/a/b\" cannot name"}},
      {{Of({Piece({1}, 0, 1, "model", "")})}, {"\"model/\" cannot name"}},
      {{Of({Piece({1}, 0, 1, "plait")})}, {"\"plait/x\" cannot name"}},
      {{Of({Piece({1}, 0, 1, "a//b")})}, {"\"a//b/x\" cannot name"}},
      {{Of({Piece({1}, 0, 1, "a", "b"), Piece({1}, 0, 1, "a/b", "c")})}, {"a/b names a tensor and a group"}},
      {{Of({}, 1), Of({}, 2)}, {"rank 1 saves step 2 where rank 0 saves step 1"}},
      {{Of({}, -1)}, {"step -1"}},
  };
  for (const auto& [offers, parts] : cases) {
    const absl::Status status = MakeLayout(offers).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    for (const std::string& part : parts) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
}

}  // namespace
}  // namespace plait::parallel
