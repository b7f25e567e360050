#include "tools/odenet_training/nested.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/lerp.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "comm/byte_stream.h"
#include "comm/gathered_text.h"
#include "parallel/checkpoint/tensor_piece.h"
#include "parallel/training_state/training_state.h"
#include "tools/training/model_file.h"

namespace plait::odenet_training {
namespace {

constexpr absl::string_view kLayers = "layers.";

struct LayerName {
  std::int64_t layer = 0;
  std::string rest;  // "linear.weight"
};

LayerName Parsed(const std::string& name) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(absl::string_view(name).substr(kLayers.size()), absl::MaxSplits('.', 1));
  LayerName parsed = {.layer = 0, .rest = parts.second};
  PLAIT_CHECK(absl::SimpleAtoi(parts.first, &parsed.layer)) << name;
  return parsed;
}

std::string NameOf(std::int64_t layer, const std::string& rest) {
  return absl::StrCat(kLayers, layer, ".", rest);
}

// Coarse levels have no files but checkpoints, and the model that is evaluated alone.
OdeNetSettings OfCoarseLevel(const OdeNetSettings& settings, std::int64_t layers) {
  OdeNetSettings coarse = WithoutFiles(settings);
  // Over the same time as the finest network, whose steps are 1.
  if (settings.final_time == 0) coarse.final_time = static_cast<double>(settings.layers);
  coarse.checkpoint_dir = settings.checkpoint_dir;
  coarse.checkpoint_interval = settings.checkpoint_interval;
  if (settings.eval_only) coarse.save_model = settings.save_model;
  if (!coarse.lp.Check(layers, "layers").ok()) coarse.lp.PropagateSerially();
  return coarse;
}

// On rank 0.
absl::Status ProbeFiles(const OdeNetSettings& settings) {
  const std::string outputs = base::FromUser(settings.outputs);
  if (!outputs.empty()) {
    PLAIT_RETURN_IF_ERROR(base::Prefixed(base::ProbeWritableFolder(outputs), "--outputs"));
  }
  std::string history = base::FromUser(settings.history);
  if (history.empty() && !outputs.empty()) history = outputs + "/" + settings.history_name;
  if (history.empty()) return absl::OkStatus();  // a new folder's
  return training::CheckHistoryPlace(history, !settings.resume.empty());
}

// The finest level opens its files once the others have been trained: what they will be refused for is said before.
absl::Status CheckOutputs(const OdeNetSettings& settings, const training::Run& run) {
  if (settings.dry_run || settings.eval_only) return absl::OkStatus();
  return run.world.Agree(run.world.rank() == 0 ? ProbeFiles(settings) : absl::OkStatus());
}

// Where the run begins, or goes on.
absl::StatusOr<int> FirstLevel(const training::Run& run, int levels) {
  if (run.settings.dry_run) return 0;
  if (!run.checkpoint.has_value()) return levels - 1;
  if (run.checkpoint->integers().count(kLevel) == 0) return 0;  // of an earlier version
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t level, run.checkpoint->Integer(kLevel));
  if (level >= 0 && level < levels) return static_cast<int>(level);
  return absl::DataLossError(absl::StrCat("--resume: ", run.checkpoint->folder(), ": level ", level,
                                          "; expected 0 to ", levels - 1));
}

struct TrainedLevel {
  std::vector<Point> story;
  std::int64_t steps = 0;  // of this level and coarser ones
  Weights weights;         // of coarse levels
};

absl::StatusOr<TrainedLevel> TrainLevel(const OdeNetSettings& settings, training::Run& run,
                                        const Problem& problem, const Level& level) {
  OdeNetTask task(settings, run, problem, level);
  if (level.prints) run.log.Info(absl::StrCat("model=", task.net().Description()));
  training::Trainer trainer(run, task);
  PLAIT_RETURN_IF_ERROR(trainer.Prepare());
  if (settings.dry_run) return TrainedLevel{};
  PLAIT_RETURN_IF_ERROR(trainer.Train());
  TrainedLevel trained = {.story = task.story(), .steps = task.step(), .weights = {}};
  if (level.number > 0 && !run.stopped) {
    PLAIT_ASSIGN_OR_RETURN(trained.weights, MastersOfAllRanks(trainer.model()));
  }
  if (level.number == 0 || settings.eval_only) {
    PLAIT_RETURN_IF_ERROR(training::SaveModel(trainer.model(), settings.save_model, run));
  }
  PLAIT_RETURN_IF_ERROR(trainer.Conclude());
  return trained;
}

void PrintStory(const std::vector<Point>& story, const training::Run& run) {
  run.log.Info("level  layers  work units      loss  accuracy");
  for (std::size_t i = 0; i < story.size(); ++i) {
    const Point& point = story[i];
    if (i + 1 < story.size() && story[i + 1].level == point.level) continue;
    run.log.Info(absl::StrFormat("%5d  %6d  %10.2f  %8.6f  %7.2f%%", point.level, point.layers,
                                 point.work_units, point.val_loss, point.val_acc));
  }
}

}  // namespace

// As the pieces of a checkpoint. No axis of this program splits a parameter otherwise than in ranges of its elements.
absl::StatusOr<Weights> MastersOfAllRanks(training::ShardedModel& model) {
  const comm::Communicator& world = model.mesh().world();
  const auto pieces = parallel::PiecesOf(model.engine(), /*optimizer=*/nullptr);
  PLAIT_RETURN_IF_ERROR(world.Agree(pieces.status()));
  comm::ByteWriter mine;
  for (const parallel::TensorPiece& piece : *pieces) {
    parallel::WriteSpec(piece.tensor, mine);
    mine.Write(piece.begin);
    mine.WriteText({static_cast<const char*>(piece.data), static_cast<std::size_t>(piece.bytes())});
  }
  Weights all;
  for (const std::string& bytes : comm::GatherText(world, mine.Take())) {
    for (comm::ByteReader reader(bytes); !reader.at_end();) {
      const parallel::TensorSpec spec = parallel::ReadSpec(reader);
      at::Tensor& values = all[spec.name];
      if (!values.defined()) values = at::empty(spec.shape, at::dtype(spec.dtype));
      const std::int64_t offset = reader.Read<std::int64_t>() * parallel::ElementBytes(spec.dtype);
      const std::string part = reader.ReadText();
      std::memcpy(static_cast<char*>(values.mutable_data_ptr()) + offset, part.data(), part.size());
    }
  }
  for (const models::ParameterUnit& unit : model.model().units()) {
    for (const models::ParameterSpec& spec : unit.parameters) {
      if (spec.role == models::ParameterRole::kBuffer) all.erase(spec.name);
    }
  }
  return all;
}

Weights Refined(const Weights& coarse, int factor, bool linear) {
  Weights fine;
  for (const auto& [name, value] : coarse) {
    if (!absl::StartsWith(name, kLayers)) {
      fine[name] = value;
      continue;
    }
    const auto [layer, rest] = Parsed(name);
    const auto next = coarse.find(NameOf(layer + 1, rest));
    for (int i = 0; i < factor; ++i) {
      const bool between = linear && next != coarse.end();
      fine[NameOf(layer * factor + i, rest)] =
          between ? at::lerp(value, next->second, static_cast<double>(i) / factor) : value;
    }
  }
  return fine;
}

OdeNetSettings WithoutFiles(OdeNetSettings settings) {
  settings.outputs = settings.history = settings.checkpoint_dir = settings.resume = settings.save_model = "";
  settings.checkpoint_interval = 0;
  settings.plots = settings.trace = false;
  return settings;
}

training::Run WithSettings(const training::Run& run, OdeNetSettings& settings) {
  return {.program = run.program,
          .settings = settings,
          .table = run.table,
          .settings_line = run.settings_line,
          .session = run.session,
          .world = run.world,
          .mesh = run.mesh,
          .data = run.data,
          .losses = run.losses,
          .device = run.device,
          .log = run.log,
          .console = run.console,
          .environment = run.environment,
          .checkpoint = {},
          .polls_stop_signals = run.polls_stop_signals};
}

absl::StatusOr<std::vector<Point>> TrainLevels(const OdeNetSettings& settings, training::Run& run,
                                               const Problem& problem, bool prints) {
  const std::vector<std::int64_t> layers = settings.Levels();
  Level level = {.prints = prints};
  PLAIT_ASSIGN_OR_RETURN(level.number, FirstLevel(run, static_cast<int>(layers.size())));
  if (level.number > 0) PLAIT_RETURN_IF_ERROR(CheckOutputs(settings, run));
  for (; level.number > 0; --level.number) {
    level.layers = layers[level.number];
    OdeNetSettings coarse = OfCoarseLevel(settings, level.layers);
    training::Run level_run = WithSettings(run, coarse);
    level_run.checkpoint = std::exchange(run.checkpoint, std::nullopt);
    level.epochs = settings.EpochsOf(level.number);
    PLAIT_ASSIGN_OR_RETURN(TrainedLevel trained, TrainLevel(coarse, level_run, problem, level));
    run.stopped = level_run.stopped;
    if (run.stopped || settings.eval_only) return trained.story;
    level.earlier = std::move(trained.story);
    level.first_step = trained.steps;
    level.initial =
        Refined(trained.weights, settings.nested_cfactor, settings.nested_interpolation == "linear");
  }
  level.layers = settings.layers;
  level.epochs = settings.epochs;
  PLAIT_ASSIGN_OR_RETURN(const TrainedLevel trained, TrainLevel(settings, run, problem, level));
  if (prints && layers.size() > 1 && !settings.dry_run && !settings.eval_only) PrintStory(trained.story, run);
  return trained.story;
}

}  // namespace plait::odenet_training
