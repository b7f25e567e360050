#include "tools/cnn_training/run_state.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace plait::cnn_training {
namespace {

using parallel::Checkpoint;

constexpr char kProgram[] = "train_cnn 1";
constexpr char kSettingPrefix[] = "setting.";

absl::Status Damaged(const Checkpoint& checkpoint, const std::string& what) {
  return absl::DataLossError(absl::StrCat(checkpoint.folder(), ": ", what, ": no checkpoint of train_cnn"));
}

// Every bit of it.
std::string TextOf(double number) { return absl::StrFormat("%a", number); }

absl::StatusOr<double> NumberOf(const Checkpoint& checkpoint, const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return Damaged(checkpoint, absl::StrCat("\"", text, "\" is no number"));
  return number;
}

absl::StatusOr<double> LossSumOf(Checkpoint& checkpoint, int rank) {
  PLAIT_ASSIGN_OR_RETURN(const std::string text, checkpoint.RankState(rank, "loss_sum"));
  return NumberOf(checkpoint, text);
}

}  // namespace

RunSettings SettingsOf(const Config& config, int ranks, const data::ImageSet& set) {
  return {{"batch_size_of_all_ranks", absl::StrCat(config.batch_size * ranks)},
          {"dropout1", absl::StrCat(config.dropout1)},
          {"dropout2", absl::StrCat(config.dropout2)},
          {"dtype", config.dtype},
          {"gamma", absl::StrCat(config.gamma)},
          {"image", absl::StrCat(set.train.rows, " x ", set.train.columns)},
          {"classes", absl::StrCat(set.class_names.size())},
          {"lr", absl::StrCat(config.lr)},
          {"seed", absl::StrCat(config.seed)},
          {"training_samples", absl::StrCat(set.train.samples())},
          {"weight_decay", absl::StrCat(config.weight_decay)}};
}

parallel::CheckpointState ToCheckpoint(const RunState& state, const RunSettings& settings,
                                       const std::string& flags) {
  parallel::CheckpointState checkpoint;
  checkpoint.texts = {{"program", kProgram}, {"config", flags}, {"epoch.seconds", TextOf(state.seconds)}};
  for (const auto& [name, value] : settings) checkpoint.texts[kSettingPrefix + name] = value;
  checkpoint.integers = {{"step", state.step},
                         {"sampler.seed", static_cast<std::int64_t>(state.sampler.seed)},
                         {"sampler.epoch", state.sampler.epoch},
                         {"sampler.position", state.sampler.position},
                         {"optimizer.step", state.step},
                         {"history.draws", state.history_draws}};
  checkpoint.rank_state = {{"loss_sum", TextOf(state.loss_sum)}};
  return checkpoint;
}

absl::Status CheckSettings(const Checkpoint& checkpoint, const RunSettings& settings) {
  const auto program = checkpoint.texts().find("program");
  if (program == checkpoint.texts().end() || program->second != kProgram) {
    return Damaged(checkpoint,
                   absl::StrCat("expected program \"", kProgram, "\", found \"",
                                program == checkpoint.texts().end() ? "" : program->second, "\""));
  }
  for (const auto& [name, value] : settings) {
    const auto found = checkpoint.texts().find(kSettingPrefix + name);
    const std::string other = found == checkpoint.texts().end() ? "nothing" : found->second;
    if (other == value) continue;
    return absl::InvalidArgumentError(absl::StrCat(checkpoint.folder(), ": checkpoint of another run: ", name,
                                                   " is ", other, " there and ", value, " here"));
  }
  return absl::OkStatus();
}

absl::StatusOr<RunState> RunStateOf(Checkpoint& checkpoint, const comm::Communicator& world) {
  RunState state;
  std::int64_t seed = 0;
  const std::pair<const char*, std::int64_t*> integers[] = {{"step", &state.step},
                                                            {"sampler.seed", &seed},
                                                            {"sampler.epoch", &state.sampler.epoch},
                                                            {"sampler.position", &state.sampler.position},
                                                            {"history.draws", &state.history_draws}};
  for (const auto& [name, value] : integers) {
    PLAIT_ASSIGN_OR_RETURN(*value, checkpoint.Integer(name));
  }
  state.sampler.seed = static_cast<std::uint64_t>(seed);
  PLAIT_ASSIGN_OR_RETURN(const std::string seconds, checkpoint.Text("epoch.seconds"));
  PLAIT_ASSIGN_OR_RETURN(state.seconds, NumberOf(checkpoint, seconds));
  const bool same_ranks = checkpoint.ranks() == world.size();
  for (int rank = 0; rank < checkpoint.ranks(); ++rank) {
    if (same_ranks ? rank != world.rank() : world.rank() != 0) continue;
    PLAIT_ASSIGN_OR_RETURN(const double part, LossSumOf(checkpoint, rank));
    state.loss_sum += part;
  }
  return state;
}

}  // namespace plait::cnn_training
