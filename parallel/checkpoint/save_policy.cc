#include "parallel/checkpoint/save_policy.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "base/check.h"

namespace plait::parallel {

double WallClockSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

SavePolicy::SavePolicy(comm::Communicator comm, SavePolicyOptions options)
    : comm_(std::move(comm)), options_(std::move(options)) {
  PLAIT_CHECK(options_.check_every_steps > 0) << options_.check_every_steps;
  last_save_seconds_ = options_.now_seconds();
  job_end_seconds_ = JobEndSeconds(options_.start_seconds, options_.walltime_seconds, options_.lookup);
}

SaveDecision SavePolicy::Decide(std::int64_t step, int stop_signal) {
  const double now = options_.now_seconds();
  SaveDecision decision;
  if (options_.every_steps > 0 && step % options_.every_steps == 0) {
    decision = {true, false, absl::StrCat("step ", step)};
  }
  if (step % options_.check_every_steps == 0) {
    // Set-up, before the first check, takes longer than steps do.
    longest_check_seconds_ = std::max(longest_check_seconds_, now - last_check_seconds_.value_or(now));
    last_check_seconds_ = now;
    const double needed = options_.margin_seconds + longest_save_seconds_ + longest_check_seconds_;
    const bool due =
        comm_.rank() == 0 && options_.every_seconds > 0 && now - last_save_seconds_ >= options_.every_seconds;
    const bool nearly_over = job_end_seconds_ && now + needed >= *job_end_seconds_;
    std::int64_t any[3] = {due ? 1 : 0, nearly_over ? 1 : 0, stop_signal};
    comm_.AllReduce(comm::BufferOf(absl::MakeSpan(any)), comm::ReduceOp::kMax);
    if (any[0] > 0) {
      decision = {true, false, absl::StrFormat("%.0f s since the last save", options_.every_seconds)};
    }
    if (any[1] > 0) decision = {true, true, "the job's time is nearly over"};
    if (any[2] > 0) {
      const int signal = static_cast<int>(any[2]);
      decision = {true, true, absl::StrCat("SIG", sigabbrev_np(signal)), signal};
    }
  }
  if (decision.save) last_save_seconds_ = now;
  return decision;
}

void SavePolicy::NoteSave(double seconds) {
  longest_save_seconds_ = std::max(longest_save_seconds_, seconds);
}

}  // namespace plait::parallel
