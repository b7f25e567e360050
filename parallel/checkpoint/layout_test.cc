// Pieces that do not make up their tensors, each an error that says which.
#include "parallel/checkpoint/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plait::parallel {
namespace {

using ::testing::HasSubstr;

constexpr data::DType kType = data::DType::kFloat32;

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
  const std::vector<LayoutPiece> expected = {{0, 1, 0, 2, 1}, {0, 0, 2, 4, 0}, {1, 1, 0, 3, 0}};
  EXPECT_EQ(layout->pieces, expected);
  EXPECT_EQ(layout->PiecesOf(1).size(), 2u);
  EXPECT_EQ(layout->ArrayOf(layout->pieces[1]), "b/x[2:4]");
  EXPECT_EQ(layout->TotalBytes(), 28);
}

TEST(Layout, ScalarsAndEmptyTensorsNeedNoSpecialCase) {
  EXPECT_TRUE(MakeLayout({Of({Piece({}, 0, 1), Piece({0, 5}, 0, 0, "empty")})}).ok());
  EXPECT_FALSE(MakeLayout({Of({Piece({}, 0, 0)})}).ok());
}

TEST(Layout, ErrorsNameTensorElementsAndRanks) {
  TensorPiece other_type = Piece({4}, 2, 4);
  other_type.tensor.dtype = data::DType::kBFloat16;
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
      {{Of({Piece({-1, 3}, 0, 0)})}, {"(-1, 3) is no shape"}},
      {{Of({Piece({std::int64_t{1} << 40, std::int64_t{1} << 40}, 0, 0)})}, {"is no shape"}},
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
