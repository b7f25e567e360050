// LibTorch's tensors to a checkpoint and back, bit by bit.
#include "parallel/checkpoint/pieces_of_tensor.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
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

TEST(PiecesOfTensor, AnotherTypeIsAnError) {
  Checkpoint checkpoint = *Checkpoint::Open(Saved("other_type", {WholeTensor("model", "w", at::zeros({2}))}));
  const absl::Status status = ReadTensor(checkpoint, "model/w", 0, at::zeros({2}, at::kBFloat16));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("model/w is float32 there"), HasSubstr("bfloat16 here")));
}

}  // namespace
}  // namespace plait::parallel
