// The draws of a history for TensorBoard: `tensorboard --logdir FOLDER`.
//
//   PLAIT_ASSIGN_OR_RETURN(auto sink, TensorboardSink::Create("tb/run1", {.attributes = attributes}));
//   history->AddSink(std::move(sink));
//
// Writes FOLDER/events.out.tfevents.<seconds>.<host>.<pid>, one event per draw:
//   metrics        scalars; float32, as TensorBoard keeps them; NaN and infinities are kept
//   vectors        histograms of their finite values, in 30 buckets of equal width
//   attributes     a text named "run", as a table
//   hyper-parameters, for the HPARAMS page, with the run's end as success or failure; values that read as
//   numbers
//                  are numbers, "true" and "false" are bool
//
// TensorBoard takes all files of a folder for one run: a folder that has event files is refused, or moved
// aside, or, for a resumed run, gets a further file. No TensorFlow is needed.
#ifndef PLAIT_DATA_HISTORY_TENSORBOARD_SINK_H_
#define PLAIT_DATA_HISTORY_TENSORBOARD_SINK_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/history/append_file.h"
#include "data/history/history_sink.h"

namespace plait::tensorboard {
class SummaryValue;
class Summary;
}  // namespace plait::tensorboard

namespace plait::data {

struct TensorboardOptions {
  std::map<std::string, std::string> attributes = {};
  std::vector<std::pair<std::string, std::string>> hyperparameters = {};  // settings_line.h
  bool move_old_aside = false;
  bool resume = false;
};

class TensorboardSink : public HistorySink {
 public:
  // AlreadyExists where the folder has event files; errors of folder and file. Makes the folder.
  static absl::StatusOr<std::unique_ptr<TensorboardSink>> Create(const std::string& folder,
                                                                 const TensorboardOptions& options);

  absl::Status Declare(const Metric&) override { return absl::OkStatus(); }
  absl::Status Add(const Draw& draw) override;
  absl::Status Close(bool complete) override;

  // Beyond the draws.
  absl::Status AddText(const std::string& tag, std::int64_t step, const std::string& markdown);
  const std::string& path() const { return file_.path(); }

 private:
  TensorboardSink(AppendFile file, bool has_hyperparameters)
      : file_(std::move(file)), has_hyperparameters_(has_hyperparameters) {}
  absl::Status Write(const tensorboard::Summary& summary, std::int64_t step, double unix_seconds);
  absl::Status WriteHyperparameters(const std::vector<std::pair<std::string, std::string>>& hyperparameters);

  AppendFile file_;
  bool has_hyperparameters_;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_TENSORBOARD_SINK_H_
