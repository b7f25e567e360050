// Pipeline schedules as data: the actions of each rank, in order.
//
//   PLAIT_ASSIGN_OR_RETURN(const Schedule schedule,
//                          MakeSchedule(ScheduleKind::k1F1B, {.ranks = 4, .micro_batches = 8}));
//   std::cout << ToText(schedule);    // a line per rank: "0F0 0F1 0F2 0F3 0B0 0F4 ..."
//
// A model of S stages is distributed over `ranks` ranks with `chunks` stages each. An action processes one micro-batch
// in one stage: F is the forward and B the backward, or its two parts: I computes the gradient of the stage's input,
// which the previous stage waits for, and W the gradients of its weights, which no stage waits for. "2F5" is the
// forward of stage 2 for micro-batch 5.
//
//   gpipe         all forwards, then all backwards. Huang et al., NeurIPS 2019.
//   1f1b          after a warm-up each forward is followed by a backward: rank r has at most ranks - r
//                 micro-batches in flight. Harlap et al., SOSP 2019; Narayanan et al., SC 2021, section 2.2.1.
//   interleaved   1f1b with `chunks` stages per rank: stage s is on rank s mod ranks. The bubble is divided by
//                 `chunks`. Narayanan et al., SC 2021, section 2.2.2.
//   zb-h1         1f1b with W delayed to times when a rank would wait: a third of the bubble if F, I and W take equally
//                 long, and no rank has more in flight than rank 0 under 1f1b. Qi et al., "Zero Bubble Pipeline
//                 Parallelism", ICLR 2024.
//   zbv           two stages per rank, placed as a V: rank r has r and 2 ranks - 1 - r. No bubble if F, I and W take
//                 equally long and there are at least 2 ranks micro-batches. Qi et al., ICLR 2024, section 6.
//
// Local.
#ifndef PLAIT_PARALLEL_PIPELINE_SCHEDULE_H_
#define PLAIT_PARALLEL_PIPELINE_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plait::parallel {

enum class ScheduleKind : std::uint8_t { kGpipe, k1F1B, kInterleaved, kZbH1, kZbv };
inline constexpr ScheduleKind kScheduleKinds[] = {ScheduleKind::kGpipe, ScheduleKind::k1F1B,
                                                  ScheduleKind::kInterleaved, ScheduleKind::kZbH1,
                                                  ScheduleKind::kZbv};
absl::string_view Name(ScheduleKind kind);  // "gpipe", "1f1b", "interleaved", "zb-h1", "zbv"
std::vector<std::string> ScheduleNames();
// INVALID_ARGUMENT for an unknown name; the message lists the names.
absl::StatusOr<ScheduleKind> ParseScheduleKind(absl::string_view name);

enum class ActionKind : std::uint8_t { kForward, kBackward, kInputGradient, kWeightGradient };

struct Action {
  ActionKind kind = ActionKind::kForward;
  int stage = 0;
  int micro_batch = 0;

  friend bool operator==(const Action&, const Action&) = default;
};
std::string ToText(const Action& action);  // "2F5"

struct ScheduleOptions {
  int ranks = 1;
  int chunks = 0;  // stages per rank; 0: the default, 2 for interleaved and zbv, else 1
  int micro_batches = 1;
};

struct Schedule {
  std::string name;
  int ranks = 1, chunks = 1, micro_batches = 1;
  std::vector<int> rank_of_stage;            // ranks x chunks stages
  std::vector<std::vector<Action>> actions;  // by rank

  int stages() const { return static_cast<int>(rank_of_stage.size()); }
};

// INVALID_ARGUMENT if a number is below 1, `chunks` does not fit the schedule (zbv: 2; interleaved: any; others: 1), or
// the number of micro-batches of interleaved with several chunks is not a multiple of `ranks`.
absl::StatusOr<Schedule> MakeSchedule(ScheduleKind kind, const ScheduleOptions& options);

// One line per rank.
std::string ToText(const Schedule& schedule);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PIPELINE_SCHEDULE_H_
