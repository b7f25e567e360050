#include "tools/odenet_training/study.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "tools/odenet_training/nested.h"

namespace plait::odenet_training {
namespace {

// Epochs of the finest network with the work of all levels.
int EpochsOfSameWork(const OdeNetSettings& nested) {
  const std::vector<std::int64_t> layers = nested.Levels();
  double epochs = 0;
  for (std::size_t level = 0; level < layers.size(); ++level) {
    epochs += nested.EpochsOf(static_cast<int>(level)) * static_cast<double>(layers[level]) /
              static_cast<double>(nested.layers);
  }
  return static_cast<int>(std::lround(epochs));
}

absl::StatusOr<double> AccuracyOf(const OdeNetSettings& settings, training::Run& run,
                                  const Problem& problem) {
  OdeNetSettings own = WithoutFiles(settings);
  training::Run own_run = WithSettings(run, own);
  PLAIT_ASSIGN_OR_RETURN(const std::vector<Point> story,
                         TrainLevels(own, own_run, problem, /*prints=*/false));
  run.stopped = own_run.stopped;
  run.log.Info(absl::StrFormat(
      "channels=%d nested=%d tikhonov=%g initial_weights=%g seed=%d work_units=%.0f val_acc=%.1f",
      own.channels, own.nested ? 1 : 0, own.tikhonov, own.initial_weights, own.seed, story.back().work_units,
      story.back().val_acc));
  return story.back().val_acc;
}

void PrintTable(std::int64_t channels, const std::vector<double>& nested, const std::vector<double>& plain,
                const training::Run& run) {
  const Spread a = SpreadOf(nested), b = SpreadOf(plain);
  run.log.Info(absl::StrFormat("%d channels, validation accuracy of %d runs each", channels, nested.size()));
  run.log.Info("             Nested  Non-Nested");
  const auto line = [&](const char* name, double of_nested, double of_plain) {
    run.log.Info(absl::StrFormat("%-10s  %6.2f%%     %6.2f%%", name, of_nested, of_plain));
  };
  line("Mean", a.mean, b.mean);
  line("Median", a.median, b.median);
  line("Max", a.most, b.most);
  line("Min", a.least, b.least);
  line("Std. Dev", a.deviation, b.deviation);
}

absl::Status StudyChannels(OdeNetSettings settings, training::Run& run, const Problem& problem) {
  std::vector<double> accuracies[2];  // not nested, nested
  OdeNetSettings nested = settings;
  nested.nested = true;
  const int epochs[2] = {EpochsOfSameWork(nested), settings.epochs};
  const std::uint64_t first_seed = settings.seed;
  for (const double tikhonov : {1e-5, 1e-7}) {
    for (const double initial_weights : {0.0, 1e-6}) {
      for (int i = 0; i < settings.study_seeds; ++i) {
        for (const bool is_nested : {true, false}) {
          settings.tikhonov = tikhonov;
          settings.initial_weights = initial_weights;
          settings.seed = first_seed + i;
          settings.nested = is_nested;
          settings.epochs = epochs[is_nested ? 1 : 0];
          settings.eval_interval = settings.epochs;
          PLAIT_ASSIGN_OR_RETURN(const double accuracy, AccuracyOf(settings, run, problem));
          accuracies[is_nested ? 1 : 0].push_back(accuracy);
        }
      }
    }
  }
  PrintTable(settings.channels, accuracies[1], accuracies[0], run);
  return absl::OkStatus();
}

}  // namespace

Spread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  const std::size_t middle = values.size() / 2;
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {.mean = mean,
          .median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2,
          .most = values.back(),
          .least = values.front(),
          .deviation = values.size() > 1 ? std::sqrt(squares / (count - 1)) : 0};
}

absl::Status RunStudy(const OdeNetSettings& settings, training::Run& run, const Problem& problem) {
  for (const std::int64_t channels : {5, 8}) {
    OdeNetSettings of_channels = settings;
    of_channels.channels = channels;
    PLAIT_RETURN_IF_ERROR(StudyChannels(of_channels, run, problem));
  }
  return absl::OkStatus();
}

}  // namespace plait::odenet_training
