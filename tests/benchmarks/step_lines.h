// Measures a network's batches and prints a line for each kind of figure, "word key=value key=value ...":
//
//   serial_step ranks=1 steps=128 problem=gru batch=100 hidden=100 setting=serial median=0.0811 min=... max=...
//   lp_step ranks=2 steps=128 problem=gru batch=100 hidden=100 setting=levels=3/... median=... min=... max=... processor=...
//       forward=... head=... backward=... overhead=0.021 overhead_without_messages=0.014 messages=... forward_evaluations=...
//       backward_evaluations=... (one line)
//   lp_costs ranks=2 steps=128 ... fine_step=0.00021 ... state_bytes=... gradient_bytes=... ahead=0 shared=1
//       input_gradient=0 inputs=... head=... solver=... sum=... (one line)
//   messages ranks=2 problem=gru latency=... per_byte=... contention=... hand_over=...
//
// Times are in seconds per batch. Parts are means over ranks and batches; the median is of the slowest rank's time,
// `processor` of the rank that took most processor time. `overhead` is the share of forward and backward outside Phi,
// its adjoint and the weight gradients. measurements.h reads these lines.
#ifndef PLAIT_TESTS_BENCHMARKS_STEP_LINES_H_
#define PLAIT_TESTS_BENCHMARKS_STEP_LINES_H_

#include <string>

#include "tests/benchmarks/timed_network.h"

namespace plait::benchmarks {

struct MeasureOptions {
  int batches = 20, warmup = 3;
  bool serial = true;    // on one rank: the same network step after step as well
  bool messages = true;  // on several ranks: what messages cost, and how ranks slow each other down
};

// "word ranks=2 steps=128 problem=gru ... setting=SETTING", the beginning of a line.
std::string LineHead(const std::string& word, TimedNetwork& network, const std::string& setting);

// Collective; rank 0 prints. `setting`: of the network's solver, in words.
void MeasureSteps(TimedNetwork& network, const std::string& setting, const MeasureOptions& options);

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_STEP_LINES_H_
