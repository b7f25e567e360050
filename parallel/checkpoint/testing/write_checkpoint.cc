// write_checkpoint FOLDER [boxes]: saves the tensors of testing_tensors.h, cut over the ranks that run it, as step 12
// in FOLDER. With "boxes", also some random tensors, and all of them as a random mesh holds them (testing_meshes.h).
// The integer "seed.PATH" tells other programs the elements of each tensor: element i is made of the bits
// ((seed + i) * 6364136223846793005 mod 2^64) >> 20.
#include <string>

#include "absl/strings/str_cat.h"
#include "base/seed.h"
#include "base/status_macros.h"
#include "comm/session_main.h"
#include "parallel/checkpoint/save.h"
#include "parallel/checkpoint/testing/testing_meshes.h"
#include "parallel/checkpoint/testing/testing_tensors.h"

namespace {

using namespace plait;

absl::Status Write(const comm::Communicator& world, const std::string& folder, bool boxes) {
  std::vector<parallel::TensorSpec> tensors = parallel::testing::ManyTensors();
  if (boxes) {
    const std::vector<parallel::TensorSpec> random = parallel::testing::RandomTensors(40, 9);
    tensors.insert(tensors.end(), random.begin(), random.end());
  }
  const auto cut = boxes ? parallel::testing::RandomMeshPieces : parallel::testing::RandomPieces;
  const parallel::testing::OwnedPieces own = cut(tensors, world.size(), world.rank(), 9, 0);
  parallel::CheckpointState state = {.texts = {{"config", "{\"name\": \"\u00e9\"}"}},
                                     .rank_state = {{"rng", absl::StrCat("rank ", world.rank())}}};
  for (const parallel::TensorSpec& tensor : tensors) {
    const std::string path = parallel::PathOf(tensor);
    state.integers["seed." + path] = static_cast<std::int64_t>(base::DeriveSeed(0, path));
  }
  return parallel::SaveCheckpoint(world, folder, 12, own.pieces, state).status();
}

}  // namespace

int main(int argc, char** argv) {
  return comm::RunMain(argc, argv, {}, [&](comm::Session& session) -> absl::Status {
    const bool boxes = argc == 3 && std::string(argv[2]) == "boxes";
    if (argc != 2 && !boxes) return absl::InvalidArgumentError("expected FOLDER [boxes]");
    return Write(session.world(), argv[1], boxes);
  });
}
