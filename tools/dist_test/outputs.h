// The files of a run: history, trace, profile, plots.
//
//   PLAIT_ASSIGN_OR_RETURN(Outputs outputs, Outputs::Open(config, facts, world));
//   for (...) PLAIT_RETURN_IF_ERROR(outputs.Record(step, times));
//   PLAIT_RETURN_IF_ERROR(outputs.Close());
//   PLAIT_RETURN_IF_ERROR(outputs.Draw(log));
#ifndef PLAIT_TOOLS_DIST_TEST_OUTPUTS_H_
#define PLAIT_TOOLS_DIST_TEST_OUTPUTS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/log.h"
#include "comm/communicator.h"
#include "data/history/run_attributes.h"
#include "tools/dist_test/config.h"
#include "tools/dist_test/step_summary.h"
#include "tools/training/run_outputs.h"

namespace plait::dist_test {

class Outputs {
 public:
  // Collective. Makes the folder (outputs/test_dist/DATE-TIME without --outputs). Errors are the same on all
  // ranks: a folder that takes no files, a history that is there already.
  static absl::StatusOr<Outputs> Open(const Config& config, data::RunFacts facts,
                                      const comm::Communicator& world);

  // Local. The traffic so far counts for no step: before the first one that is recorded.
  void PassOver(const comm::Communicator& dp) { TrafficSince(dp); }
  // Collective in every tenth call. `dp` is the axis whose traffic is noted.
  absl::Status Record(const StepSummary& step, const StepTimes& times, const comm::Communicator& dp);
  // Null without --trace.
  data::Trace* trace() { return run_.trace().trace(); }

  // Collective. The files are complete then.
  absl::Status Close() { return run_.Close(); }

  // Rank 0. Every metric in the terminal and as text, SVG and PNG; without gnuplot it says so and goes on.
  void Draw(const base::Log& log) const;
  // Rank 0. Text into a file of the folder.
  absl::Status Write(const std::string& name, const std::string& text) const;

  const std::string& folder() const { return run_.folder(); }
  const std::string& history_path() const { return run_.history_path(); }
  const std::string& trace_path() const { return run_.trace_path(); }  // empty: none
  // Per recorded step, of this rank: all-reduces in flight, and of that the time in which it stood still.
  double in_flight_seconds() const { return in_flight_ / steps_; }
  double exposed_seconds() const { return exposed_ / steps_; }

 private:
  // Of all-reduces of the axis dp.
  struct Traffic {
    double bytes = 0, in_flight_seconds = 0, exposed_seconds = 0;
  };
  explicit Outputs(training::RunOutputs run) : run_(std::move(run)) {}
  Traffic TrafficSince(const comm::Communicator& dp);  // the last call

  training::RunOutputs run_;
  Traffic so_far_;
  double in_flight_ = 0, exposed_ = 0, steps_ = 0;
};

}  // namespace plait::dist_test

#endif  // PLAIT_TOOLS_DIST_TEST_OUTPUTS_H_
