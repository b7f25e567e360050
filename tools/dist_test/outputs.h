// The files of a run: history, trace, profile, plots.
//
//   PLAIT_ASSIGN_OR_RETURN(Outputs outputs, Outputs::Open(config, facts, world));
//   for (...) PLAIT_RETURN_IF_ERROR(outputs.Record(step, mesh));
//   PLAIT_RETURN_IF_ERROR(outputs.files().Close());
//   outputs.Draw(log);
#ifndef PLAIT_TOOLS_DIST_TEST_OUTPUTS_H_
#define PLAIT_TOOLS_DIST_TEST_OUTPUTS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/log.h"
#include "comm/device_mesh.h"
#include "data/history/run_attributes.h"
#include "tools/dist_test/config.h"
#include "tools/dist_test/step_summary.h"
#include "tools/training/run_outputs.h"

namespace plait::dist_test {

// What the traffic of a step is called: "all-reduce[dp]", "collectives[dp_replicate,dp_shard]".
std::string TrafficName(const comm::DeviceMesh& mesh);

class Outputs {
 public:
  // Collective. Creates the directory (outputs/test_dist/DATE-TIME without --outputs). Errors are the same on
  // all ranks: the directory is not writable, or the history exists already.
  static absl::StatusOr<Outputs> Open(const Config& config, const data::RunFacts& facts,
                                      const comm::Communicator& world);

  // Local. Discards the traffic since the last call: it belongs to no recorded step.
  void SkipTraffic(const comm::DeviceMesh& mesh) { TrafficSince(mesh); }
  // Collective in every tenth call, which gathers the history; local otherwise.
  absl::Status Record(const StepSummary& step, const comm::DeviceMesh& mesh);
  training::RunOutputs& files() { return files_; }

  // On rank 0. Plots every metric in the terminal and as text, SVG and PNG; without gnuplot it logs a
  // warning.
  void Draw(const base::Log& log) const;

  // Means over this rank's recorded steps, in seconds: the collectives' times in flight, added up, and the part of
  // them in which the rank waited.
  double in_flight_seconds() const { return in_flight_ / steps_; }
  double exposed_seconds() const { return exposed_ / steps_; }

 private:
  // Of parameters and gradients, over all axes.
  struct Traffic {
    double bytes = 0, in_flight_seconds = 0, exposed_seconds = 0;
  };
  explicit Outputs(training::RunOutputs files) : files_(std::move(files)) {}
  Traffic TrafficSince(const comm::DeviceMesh& mesh);  // since the last call

  training::RunOutputs files_;
  Traffic so_far_;
  double in_flight_ = 0, exposed_ = 0, steps_ = 0;
};

}  // namespace plait::dist_test

#endif  // PLAIT_TOOLS_DIST_TEST_OUTPUTS_H_
