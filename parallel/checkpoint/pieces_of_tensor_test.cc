// LibTorch tensors survive a checkpoint bit by bit.
#include "parallel/checkpoint/pieces_of_tensor.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "parallel/checkpoint/save.h"

namespace plait::parallel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Saved(const std::string& name, const std::vector<TensorPiece>& pieces) {
  const std::string root = ::testing::TempDir() + "/" + name;
  std::filesystem::remove_all(root);
  const absl::StatusOr<SaveReport> report =
      SaveCheckpoint(comm::Communicator::Self(), root, 1, pieces, CheckpointState());
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? report->folder : "";
}

TEST(PiecesOfTensor, AllTypesThereAndBack) {
  std::vector<at::Tensor> tensors;
  std::vector<TensorPiece> pieces;
  for (const at::ScalarType type :
       {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong, at::kInt, at::kByte, at::kBool}) {
    tensors.push_back((at::arange(60, at::kFloat) - 7).clamp_min(0).to(type).view({3, 4, 5}));
    pieces.push_back(WholeTensor("model", c10::toString(type), tensors.back()));
  }
  Checkpoint checkpoint = *Checkpoint::Open(Saved("types", pieces));
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor read = at::zeros_like(tensor);
    const absl::Status status =
        ReadTensor(checkpoint, std::string("model/") + c10::toString(tensor.scalar_type()), 0, read);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(at::equal(read, tensor)) << tensor.scalar_type();
  }
}

TEST(PiecesOfTensor, FlatShardsStridesScalarsAndParameters) {
  const at::Tensor weight = at::arange(12, at::kFloat).view({3, 4}).requires_grad_(true);
  const at::Tensor turned = at::arange(12, at::kDouble).view({3, 4}).t();
  Checkpoint checkpoint = *Checkpoint::Open(
      Saved("shards", {PieceOfTensor("model", "w", {3, 4}, 5, weight.detach().flatten().slice(0, 5, 12)),
                       PieceOfTensor("model", "w", {3, 4}, 0, weight.detach().flatten().slice(0, 0, 5)),
                       WholeTensor("model", "turned", turned),
                       WholeTensor("optimizer", "step", at::scalar_tensor(8, at::kLong)),
                       WholeTensor("model", "empty", at::empty({0, 2}))}));
  const at::Tensor parameter = at::zeros({3, 4}).requires_grad_(true);
  EXPECT_TRUE(ReadTensor(checkpoint, "model/w", 0, parameter).ok());
  EXPECT_TRUE(at::equal(parameter, weight));
  const at::Tensor shard = at::zeros({6});
  EXPECT_TRUE(ReadTensor(checkpoint, "model/w", 3, shard).ok());
  EXPECT_TRUE(at::equal(shard, at::arange(3, 9, at::kFloat)));
  const at::Tensor columns = at::zeros({3, 4}, at::kDouble).t();  // strided as the saved one
  EXPECT_TRUE(ReadTensor(checkpoint, "model/turned", 0, columns).ok());
  EXPECT_TRUE(at::equal(columns, turned));
  const at::Tensor step = at::zeros({}, at::kLong);
  EXPECT_TRUE(ReadTensor(checkpoint, "optimizer/step", 0, step).ok());
  EXPECT_EQ(step.item<std::int64_t>(), 8);
  EXPECT_TRUE(ReadTensor(checkpoint, "model/empty", 0, at::empty({0, 2})).ok());
}

TEST(PiecesOfTensor, ATemporaryLivesAsLongAsItsPiece) {
  std::vector<TensorPiece> pieces;
  for (int i = 0; i < 20; ++i) {
    pieces.push_back(WholeTensor("model", std::to_string(i), at::arange(1000, at::kFloat) + i));
  }
  Checkpoint checkpoint = *Checkpoint::Open(Saved("temporary", pieces));
  const at::Tensor read = at::zeros({1000});
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(ReadTensor(checkpoint, "model/" + std::to_string(i), 0, read).ok());
    EXPECT_TRUE(at::equal(read, at::arange(1000, at::kFloat) + i));
  }
}

// Part of rank `rank` of `ranks` of a fused query-key-value weight with 6 rows, split by columns: each of the three has
// a third of the columns.
models::Placement FusedColumns(std::int64_t rank, std::int64_t ranks) {
  models::Placement placement{{6, 24}};
  for (std::int64_t third = 0; third < 3; ++third) {
    placement.boxes.push_back({{0, third * 8 + rank * 8 / ranks}, {6, 8 / ranks}});
  }
  return placement;
}

// The same by LibTorch: the local tensor, flattened.
at::Tensor LocalColumns(const at::Tensor& whole, std::int64_t rank, std::int64_t ranks) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& third : whole.chunk(3, 1)) parts.push_back(third.chunk(ranks, 1)[rank].flatten());
  return at::cat(parts);
}

TEST(PiecesOfTensor, FlatShardsOfFusedMatricesThatAreSplitByColumns) {
  const at::Tensor whole = at::arange(6 * 24, at::kFloat).view({6, 24});
  std::vector<TensorPiece> pieces;
  for (std::int64_t tp = 0; tp < 2; ++tp) {
    const at::Tensor local = LocalColumns(whole, tp, 2);
    // Sharded once more, unevenly: within a box, across two of them, across all, nothing.
    std::int64_t begin = 0;
    for (const std::int64_t end : {5, 5, 20, 67, 72}) {
      for (const TensorPiece& piece : PiecesOfPlacement("model", "qkv", {6, 12}, FusedColumns(tp, 2), begin,
                                                        local.slice(0, begin, end))) {
        pieces.push_back(piece);
      }
      begin = end;
    }
  }
  Checkpoint checkpoint = *Checkpoint::Open(Saved("fused", pieces));
  EXPECT_EQ(checkpoint.tensors()[0].shape, (std::vector<std::int64_t>{6, 24}));
  const at::Tensor all = at::zeros({6, 24});
  EXPECT_TRUE(ReadTensor(checkpoint, "model/qkv", 0, all).ok());
  EXPECT_TRUE(at::equal(all, whole));
  for (const std::int64_t ranks : {1, 2, 4, 8}) {
    for (std::int64_t tp = 0; tp < ranks; ++tp) {
      const at::Tensor expected = LocalColumns(whole, tp, ranks);
      for (std::int64_t begin = 0; begin < expected.numel(); begin += 7) {
        // Every other element of a larger tensor.
        const at::Tensor read =
            at::zeros({2 * std::min<std::int64_t>(7, expected.numel() - begin)}).slice(0, 0, {}, 2);
        const absl::Status status =
            ReadPlacement(checkpoint, "model/qkv", FusedColumns(tp, ranks), begin, read);
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_TRUE(at::equal(read, expected.slice(0, begin, begin + read.numel()))) << ranks << " " << tp;
      }
    }
  }
}

// Counters and scalars beside parameters: of integer types, without boxes, whole or as a flat shard of one.
TEST(PiecesOfTensor, BuffersOfIntegersAndScalars) {
  const at::Tensor counter = at::scalar_tensor(std::int64_t{1} << 53, at::kLong) + 1;  // no float64 has it
  const at::Tensor counts = at::arange(5, at::kLong) - (std::int64_t{1} << 60);
  const at::Tensor mean = at::arange(5, at::kFloat) / 3;
  const at::Tensor flag = at::scalar_tensor(true, at::kBool);
  for (const bool boxes : {false, true}) {
    std::vector<TensorPiece> pieces = {
        PiecesOfPlacement("model", "bn.running_mean", {5}, {}, 0, mean)[0],
        PiecesOfPlacement("model", "bn.num_batches_tracked", {}, {}, 0, counter)[0],
        PiecesOfPlacement("model", "steps", {}, {}, 0, counter.view({1}) + 1)[0],
        PiecesOfPlacement("model", "flag", {}, {{}, {{}}}, 0, flag)[0],
        PiecesOfPlacement("model", "counts", {5}, {}, 0, counts.slice(0, 0, 2))[0],
        PiecesOfPlacement("model", "counts", {5}, {}, 2, counts.slice(0, 2, 5))[0],
        PiecesOfPlacement("model", "none", {0, 3}, {}, 0, at::zeros({0, 3}))[0]};
    if (boxes) {
      for (std::int64_t side = 0; side < 2; ++side) {
        pieces.push_back(PiecesOfPlacement("model", "split", {5, 1}, {{5, 2}, {{{0, side}, {5, 1}}}}, 0,
                                           counts.view({5, 1}) + side)[0]);
      }
    }
    Checkpoint checkpoint = *Checkpoint::Open(Saved("buffers", pieces));
    EXPECT_TRUE(checkpoint.Verify().ok());
    const auto expect = [&](const std::string& name, const at::Tensor& expected) {
      const at::Tensor read = at::zeros_like(expected);
      const absl::Status status = ReadPlacement(checkpoint, "model/" + name, {}, 0, read);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_TRUE(at::equal(read, expected)) << name;
    };
    expect("bn.running_mean", mean);
    expect("bn.num_batches_tracked", counter);
    expect("steps", counter + 1);
    expect("flag", flag);
    expect("counts", counts);
    expect("none", at::zeros({0, 3}));
    if (boxes) expect("split", at::cat({counts.view({5, 1}), counts.view({5, 1}) + 1}, 1));
  }
}

TEST(PiecesOfTensor, ARankThatHoldsNothingKnowsTheTensor) {
  const models::Placement nothing{{2, 3}, {{{0, 3}, {2, 0}}}};
  const std::vector<TensorPiece> pieces =
      PiecesOfPlacement("model", "w", {2, 0}, nothing, 0, at::zeros({2, 0}));
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].bytes(), 0);
  EXPECT_EQ(pieces[0].tensor.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_DEATH(PiecesOfPlacement("model", "w", {2, 0}, nothing, 0, at::zeros({1})), "local tensor of 0");
}

TEST(PiecesOfTensor, APlacementInAnotherShapeIsAnError) {
  Checkpoint checkpoint =
      *Checkpoint::Open(Saved("other_shape", {WholeTensor("model", "w", at::zeros({4, 6}))}));
  const models::Placement placement{{6, 4}, {{{0, 0}, {4, 2}}}};  // which would fit into (4, 6), too
  const absl::Status status = ReadPlacement(checkpoint, "model/w", placement, 0, at::zeros({8}));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("model/w is float32 (4, 6) there and float32 (6, 4) here"));
}

TEST(PiecesOfTensor, AnotherTypeIsAnError) {
  Checkpoint checkpoint = *Checkpoint::Open(Saved("other_type", {WholeTensor("model", "w", at::zeros({2}))}));
  const absl::Status status = ReadTensor(checkpoint, "model/w", 0, at::zeros({2}, at::kBFloat16));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("model/w is float32 (2) there"), HasSubstr("bfloat16 (2) here")));
}

}  // namespace
}  // namespace plait::parallel
