// Two ranks that skip different blocks of the same size with fsdp; run by skipped_block_test.sh.
#include <cstdio>
#include <cstdlib>

#include "base/status_macros.h"
#include "comm/session_main.h"
#include "parallel/sharding/testing_model.h"

namespace plait::parallel {
namespace {

absl::Status Run(const comm::Communicator& world) {
  PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh mesh,
                         comm::DeviceMesh::Create(world, {{"dp_shard", world.size()}}));
  TestingModel model(at::kDouble);
  PLAIT_ASSIGN_OR_RETURN(
      const std::unique_ptr<DataParallel> dp,
      DataParallel::Create(mesh, model.units, {.strategy = Strategy::kFsdp, .prefetch = false}));
  model.run = [&](std::size_t block, const models::BlockForward& forward, const models::BlockState& x) {
    const bool skips = block == (world.rank() == 0 ? 2u : 1u);
    return skips ? x : dp->Run(block, 1, forward, x);
  };
  const at::Tensor x = TestNumbers({2, TestingModel::kWidth}, 1);
  const at::Tensor loss = dp->Forward([&] { return model.Loss(x, x); });
  std::printf("rank %d computed %g\n", world.rank(), loss.item<double>());
  dp->Backward(loss);
  dp->WaitForParameters();
  return absl::OkStatus();
}

}  // namespace
}  // namespace plait::parallel

// skipped_block_program [SHARED_BYTES]: 0 for messages instead of shared memory.
int main(int argc, char** argv) {
  plait::comm::SessionOptions options;
  if (argc > 1) options.shared_bytes_per_rank = std::atoll(argv[1]);
  return plait::comm::RunMain(argc, argv, options, [](plait::comm::Session& session) {
    return plait::parallel::Run(session.world());
  });
}
