// The files of a run besides its checkpoints: history, trace, plots.
//
//   PLAIT_ASSIGN_OR_RETURN(Outputs outputs, Outputs::Open(config, facts, world, /*resumed_draws=*/-1));
//   for (...) PLAIT_RETURN_IF_ERROR(outputs.Record(report, traffic));
//   PLAIT_RETURN_IF_ERROR(outputs.Close());
//   outputs.Draw(log);
#ifndef PLAIT_TOOLS_GPT_TRAINING_OUTPUTS_H_
#define PLAIT_TOOLS_GPT_TRAINING_OUTPUTS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/log.h"
#include "comm/communicator.h"
#include "data/history/run_attributes.h"
#include "tools/gpt_training/config.h"
#include "tools/gpt_training/step_line.h"
#include "tools/training_program/run_outputs.h"

namespace plait::gpt_training {

class Outputs {
 public:
  // Collective. Makes the folder (outputs/train_gpt/DATE-TIME without --outputs). A history that is there is
  // gone on with after `resumed_draws` draws; -1: of a run that begins. Errors are the same on all ranks: a
  // folder that takes no files, a history that is there already.
  static absl::StatusOr<Outputs> Open(const Config& config, data::RunFacts facts,
                                      const comm::Communicator& world, std::int64_t resumed_draws);

  // Local, before the first step and behind whatever is none: what was sent until now is no step's.
  void BeginSteps();
  // Local, right behind a step: notes what it has sent, and its spans.
  void EndStep(const StepReport& step);
  // Collective in every tenth call. `evaluation_seconds`: of the estimates and the sample after this step.
  absl::Status Record(const StepReport& step, double evaluation_seconds);
  // Collective. What was recorded is in the file.
  absl::Status Flush() { return run_.history().Flush(); }
  std::int64_t draws() const { return run_.history().draws(); }
  // Collective. The files are complete then.
  absl::Status Close() { return run_.Close(); }

  // Rank 0. Every metric in the terminal and as text, SVG and PNG; without gnuplot it says so and goes on.
  void Draw(const base::Log& log) const;

  const std::string& history_path() const { return run_.history_path(); }
  const std::string& trace_path() const { return run_.trace_path(); }  // empty: none

 private:
  Outputs(const comm::Communicator& world, training_program::RunOutputs run)
      : world_(world), run_(std::move(run)) {}
  void Trace(const StepReport& step);
  // Of one axis, all its collectives.
  struct Traffic {
    double bytes = 0, in_flight_seconds = 0, exposed_seconds = 0;
  };
  struct AxisTraffic {
    const char* name;
    Traffic before = {};   // until the step began
    Traffic of_step = {};  // in the last step
  };
  Traffic TrafficOn(const std::string& axis) const;  // so far

  comm::Communicator world_;
  training_program::RunOutputs run_;
  AxisTraffic replicate_ = {"dp_replicate"}, shard_ = {"dp_shard"};
  std::int64_t steps_ = 0;
};

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_OUTPUTS_H_
