// save_and_die FOLDER STEP [RANK POINT]: saves checkpoint STEP, whose elements are version STEP of testing_tensors.h;
// RANK kills itself (SIGKILL) when it passes save_task.h's SavePoint number POINT, counted from 0.
// save_and_die FOLDER: prints the step of the latest checkpoint if its elements are right, else what is wrong.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "comm/session_main.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/save_task.h"
#include "parallel/checkpoint/step_folders.h"
#include "parallel/checkpoint/testing/testing_tensors.h"

namespace {

using namespace plait;

std::vector<parallel::TensorSpec> Tensors() {
  return {{"model", "weight", at::kFloat, {500, 600}}, {"model", "bias", at::kDouble, {}}};
}

struct Death {
  int rank = -1;  // none
  int point = 0;
};

absl::Status Save(const comm::Communicator& world, const std::string& folder, int step, const Death& death) {
  const parallel::testing::OwnedPieces own =
      parallel::testing::RandomPieces(Tensors(), world.size(), world.rank(), 1, step);
  const parallel::SaveObserver die = [&](parallel::SavePoint passed) {
    if (world.rank() == death.rank && static_cast<int>(passed) == death.point) kill(getpid(), SIGKILL);
    return absl::OkStatus();
  };
  PLAIT_ASSIGN_OR_RETURN(parallel::SaveTask task, parallel::SaveTask::Prepare(world, folder, step, own.pieces,
                                                                              {}, {.keep_last = 1}, die));
  std::vector<const void*> values;
  for (const parallel::LayoutPiece& piece : task.own_pieces())
    values.push_back(own.pieces[piece.offered].data);
  return task.Commit(task.WriteValues(values)).status();
}

absl::Status Check(const std::string& folder) {
  PLAIT_ASSIGN_OR_RETURN(const std::string latest, parallel::FindLatestCheckpoint(folder));
  PLAIT_ASSIGN_OR_RETURN(parallel::Checkpoint checkpoint, parallel::Checkpoint::Open(latest));
  const auto step = static_cast<int>(checkpoint.step());
  const std::string difference = parallel::testing::FirstDifference(checkpoint, Tensors(), 1, step);
  if (!difference.empty()) return absl::DataLossError(difference);
  std::printf("step %d is whole\n", step);
  return absl::OkStatus();
}

absl::Status Run(const comm::Communicator& world, const std::vector<std::string>& arguments) {
  if (arguments.size() == 1) return Check(arguments[0]);
  int step = 0;
  Death death;
  const bool read =
      (arguments.size() == 2 || arguments.size() == 4) && absl::SimpleAtoi(arguments[1], &step) &&
      (arguments.size() == 2 ||
       (absl::SimpleAtoi(arguments[2], &death.rank) && absl::SimpleAtoi(arguments[3], &death.point)));
  if (!read) return absl::InvalidArgumentError("expected FOLDER [STEP [RANK POINT]]");
  return Save(world, arguments[0], step, death);
}

}  // namespace

int main(int argc, char** argv) {
  return comm::RunMain(argc, argv, {}, [&](comm::Session& session) {
    return Run(session.world(), std::vector<std::string>(argv + 1, argv + argc));
  });
}
