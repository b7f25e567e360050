// When to save, and when to stop: the same decision on all ranks.
//
//   SavePolicy policy(world, {.every_steps = 500, .walltime_seconds = flag});
//   for (std::int64_t step = 1; step <= steps; ++step) {
//     ...
//     const SaveDecision decision = policy.Decide(step, session.StopSignal());
//     if (decision.save) { Save(step); policy.NoteSave(seconds); }
//     if (decision.stop) break;                       // decision.reason: "SIGTERM", ...
//   }
//
// Saves every N steps or seconds. Saves and stops when any rank has received a signal (SIGTERM, SIGHUP, SIGUSR1, SIGINT: see
// comm::SessionOptions::stop_on_signals) or when the job's time is nearly over: its end (walltime.h) minus
// margin_seconds, the longest save so far, and the longest time between two checks.
#ifndef PLAIT_PARALLEL_CHECKPOINT_SAVE_POLICY_H_
#define PLAIT_PARALLEL_CHECKPOINT_SAVE_POLICY_H_

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "parallel/checkpoint/walltime.h"

namespace plait::parallel {

// Seconds since 1970.
double WallClockSeconds();

struct SavePolicyOptions {
  std::int64_t every_steps = 0;  // 0: not by steps
  double every_seconds =
      0;  // 0: not by time. Seconds between the beginnings of two saves, by rank 0's clock.
  double walltime_seconds =
      0;  // time limit from start_seconds on; 0: only the environment's, if any (walltime.h)
  double start_seconds = ProcessStartSeconds();
  double margin_seconds = 60;
  // One all-reduce of 24 bytes at every step that is a multiple of this; signals, every_seconds and the job's end are
  // noticed only at these steps.
  std::int64_t check_every_steps = 1;
  std::function<double()> now_seconds = WallClockSeconds;
  EnvironmentLookup lookup = [](const char* name) { return std::getenv(name); };
};

struct SaveDecision {
  bool save = false;
  bool stop = false;  // after the save
  // "step 500", "900 s since the last save", "SIGTERM", "the job's time is nearly over"
  std::string reason = "";
  int signal = 0;  // the signal that asked to stop; the largest number if ranks got different ones
};

class SavePolicy {
 public:
  SavePolicy(comm::Communicator comm, SavePolicyOptions options);

  // Collective. Call after every step, with the same ascending `step` on all ranks. `stop_signal`, 0 for none, may
  // differ between ranks.
  SaveDecision Decide(std::int64_t step, int stop_signal);
  // Local. Tells the policy how long a save took on this rank; for an asynchronous one, from Start to completion.
  void NoteSave(double seconds);

  // When the job ends on this rank's clock, in seconds since 1970; nullopt if no limit is known.
  std::optional<double> job_end_seconds() const { return job_end_seconds_; }

 private:
  comm::Communicator comm_;
  SavePolicyOptions options_;
  std::optional<double> job_end_seconds_;
  double last_save_seconds_;
  std::optional<double> last_check_seconds_;
  double longest_check_seconds_ = 0;
  double longest_save_seconds_ = 0;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_SAVE_POLICY_H_
