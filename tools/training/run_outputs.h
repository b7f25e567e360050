// The files of a run: its folder, history, trace and plots. What is recorded in them is the program's.
//
//   PLAIT_ASSIGN_OR_RETURN(RunOutputs run, RunOutputs::Open({.program = "train_gpt",
//                                                            .outputs = config.outputs,
//                                                            .history = config.history,
//                                                            .trace = config.trace,
//                                                            .metrics = Metrics()}, facts, world));
//   for (...) PLAIT_RETURN_IF_ERROR(run.history().Append({{"step", step}, {"loss", loss}}));
//   PLAIT_RETURN_IF_ERROR(run.Close());
//   if (world.rank() == 0) run.Draw({.x = "step", .plots = {{"loss"}}}, log, print);
#ifndef PLAIT_TOOLS_TRAINING_RUN_OUTPUTS_H_
#define PLAIT_TOOLS_TRAINING_RUN_OUTPUTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/log.h"
#include "comm/communicator.h"
#include "data/history/run_attributes.h"
#include "tools/rank_history/rank_history.h"
#include "tools/rank_history/rank_trace.h"

namespace plait::training {

struct OutputFolder {
  std::string path;
  std::string stamp;  // "2024-07-17-073537", local time at rank 0
};

// Collective. `outputs`, as --outputs has it; empty: outputs/PROGRAM/STAMP where the user is. Made by rank 0.
// An error, the same on all ranks, where it is not writable.
absl::StatusOr<OutputFolder> OpenOutputFolder(const std::string& program, const std::string& outputs,
                                              const comm::Communicator& world);

using Recorded = rank_history::RankColumn;

struct RunOutputsOptions {
  std::string program;       // "train_gpt"
  std::string outputs = {};  // folder; empty: outputs/PROGRAM/STAMP
  bool folder = true;        // false: the history alone, and no folder
  std::string history = {};  // file; empty: history_name in the folder
  std::string history_name = "history.h5";
  bool trace = false;  // trace.json in the folder
  std::vector<Recorded> metrics = {};
  int gather_every = 10;            // steps per gathering of the history
  std::int64_t resumed_draws = -1;  // >= 0: a history that is there is gone on with after so many draws
  rank_history::Exports exports = {};
};

// Curves of the history, a plot for each entry of `plots` that has values; heat maps of vectors.
struct HistoryPlots {
  struct Plot {
    std::string name;                       // of its files
    std::vector<std::string> metrics = {};  // empty: the one of the plot's name
    std::string y_label = {};               // empty: the name
  };
  std::string x;                 // the metric along the x axis: "step"
  std::string title = "train/";  // in front of each name
  bool robust = true;            // as data::Plot has it
  bool skips_nan = false;        // for metrics that only some steps have
  std::vector<Plot> plots = {};
  // Names of vector metrics, entries over x; those that the history does not have are left out.
  std::vector<std::string> heat_maps = {};
};

class RunOutputs {
 public:
  // Collective. Errors are the same on all ranks: a folder that takes no files, a history that is there
  // already.
  static absl::StatusOr<RunOutputs> Open(const RunOutputsOptions& options, data::RunFacts facts,
                                         const comm::Communicator& world);

  rank_history::RankHistory& history() { return *history_; }
  const rank_history::RankHistory& history() const { return *history_; }
  rank_history::RankTrace& trace() { return *trace_; }

  // Collective. The files are complete then.
  absl::Status Close();

  // Rank 0. Plots in the terminal, and as text, SVG and PNG in the folder; heat maps in the folder only. Where
  // they cannot be drawn (without gnuplot, say) it says so and goes on. Holds one heat map's numbers at a time.
  // `print` takes those for the terminal, whole.
  using Print = std::function<void(const std::string& text)>;
  void Draw(const HistoryPlots& plots, const base::Log& log, const Print& print) const;

  const std::string& folder() const { return folder_.path; }
  const std::string& history_path() const { return history_path_; }
  const std::string& trace_path() const { return trace_path_; }  // empty: none

 private:
  RunOutputs() = default;
  absl::Status OpenHistory(const RunOutputsOptions& options, const comm::Communicator& world);
  absl::Status TryToDraw(const HistoryPlots& wanted, const base::Log& log, const Print& print) const;

  OutputFolder folder_;
  std::string history_path_, trace_path_;
  std::map<std::string, std::string> attributes_;
  std::unique_ptr<rank_history::RankHistory> history_;
  std::unique_ptr<rank_history::RankTrace> trace_;
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_RUN_OUTPUTS_H_
