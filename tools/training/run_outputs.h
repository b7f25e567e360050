// The files of a run: output directory, history, trace and plots. The program decides what it records in them.
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

// Collective. Rank 0 creates the directory `outputs` (--outputs); empty: outputs/PROGRAM/STAMP in the user's working
// directory, STAMP-2 ... where other runs began in the same second. An error, the same on all ranks, if it is not writable.
absl::StatusOr<OutputFolder> OpenOutputFolder(const std::string& program, const std::string& outputs,
                                              const comm::Communicator& world);

// What a run from the beginning may not write its history at `path` for; begins with "--history: ". Errors of
// base::ProbeWritableFile; ALREADY_EXISTS if there is a history, with `begins_again` (--resume=auto and no checkpoint)
// only if its run has ended. Local.
absl::Status CheckHistoryPlace(const std::string& path, bool begins_again);

using Recorded = rank_history::RankColumn;

struct RunOutputsOptions {
  std::string program;       // "train_gpt"
  std::string outputs = {};  // folder; empty: outputs/PROGRAM/STAMP
  bool folder = true;        // false: only the history is written, and no directory is created
  std::string history = {};  // file; empty: history_name in the folder
  std::string history_name = "history.h5";
  bool trace = false;  // trace.json in the folder
  std::vector<Recorded> metrics = {};
  int gather_every = 10;            // steps per gathering of the history
  std::int64_t resumed_draws = -1;  // >= 0: an existing history is continued after this many draws
  // Before the first draw, of programs that count steps in a metric `step`: an existing history is then continued after
  // its draws up to this step. resumed_draws are those of the checkpoint, for draws lost in a power failure.
  std::int64_t steps_done = -1;
  // Without a checkpoint: the draws of an attempt that was killed are kept under another name (run.h5.1), as its
  // checkpoints may have been removed or be elsewhere; `say` gets a line that says so, on rank 0.
  bool begins_again = false;
  std::function<void(const std::string& line)> say = [](const std::string&) {};
  rank_history::Exports exports = {};
};

// Which plots to draw: curves of scalars, one plot for each entry of `plots` that has values, and heat maps of vectors.
struct HistoryPlots {
  struct Plot {
    std::string name;                       // of the plot and its files
    std::vector<std::string> metrics = {};  // empty: the metric named `name`
    std::string y_label = {};               // empty: the name
  };
  std::string x;                 // metric on the x axis: "step"
  std::string title = "train/";  // prefix of the titles
  bool robust = true;            // as in data::Plot
  bool skips_nan = false;        // omits draws that are NaN, for metrics that only some steps have
  std::vector<Plot> plots = {};
  // Names of vector metrics, drawn as entry over x; those that the history lacks are skipped.
  std::vector<std::string> heat_maps = {};
};

class RunOutputs {
 public:
  // Collective. Errors are the same on all ranks: a directory or file that is not writable; ALREADY_EXISTS if there is
  // a history at that path and resumed_draws is negative, with begins_again only one of a run that has ended.
  static absl::StatusOr<RunOutputs> Open(const RunOutputsOptions& options, data::RunFacts facts,
                                         const comm::Communicator& world);

  rank_history::RankHistory& history() { return *history_; }
  const rank_history::RankHistory& history() const { return *history_; }
  rank_history::RankTrace& trace() { return *trace_; }

  // Collective. Completes the history and writes the trace.
  absl::Status Close();

  // Call on rank 0, after Close. Draws the plots in the terminal through `print`, one call per plot, and as text, SVG
  // and PNG in the output directory; heat maps in the directory only. If plots cannot be drawn, for example without
  // gnuplot, logs a warning. Holds one heat map in memory at a time.
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
