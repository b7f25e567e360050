// A rank whose part of a checkpoint takes longer to write than the timeout of this job, whose watchdog would end it.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "comm/testing/world.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save_task.h"
#include "parallel/checkpoint/testing/testing_tensors.h"

namespace plait::parallel {
namespace {

TEST(SlowWrite, IsWaitedFor) {
  const comm::Communicator& world = comm::testing::World();
  const std::vector<TensorSpec> tensors = {{"model", "weight", at::kFloat, {30, 40}}};
  const testing::OwnedPieces own = testing::RandomPieces(tensors, world.size(), world.rank(), 1, 1);
  const SaveObserver slow = [&](SavePoint passed) {
    if (passed == SavePoint::kValuesWritten && world.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::seconds(5));
    }
    return absl::OkStatus();
  };
  absl::StatusOr<SaveTask> task =
      SaveTask::Prepare(world, ::testing::TempDir() + "/slow", 1, own.pieces, {}, {}, slow);
  ASSERT_TRUE(task.ok()) << task.status();
  std::vector<const void*> values;
  for (const LayoutPiece& piece : task->own_pieces()) values.push_back(own.pieces[piece.offered].data);
  const absl::StatusOr<SaveReport> report = task->Commit(task->WriteValues(values));
  ASSERT_TRUE(report.ok()) << report.status();
  absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(report->folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(testing::FirstDifference(*checkpoint, tensors, 1, 1), "");
}

}  // namespace
}  // namespace plait::parallel
