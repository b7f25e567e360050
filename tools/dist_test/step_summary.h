// A step as measured by all ranks, and its line in the log.
#ifndef PLAIT_TOOLS_DIST_TEST_STEP_SUMMARY_H_
#define PLAIT_TOOLS_DIST_TEST_STEP_SUMMARY_H_

#include <cstdint>
#include <string>

#include "comm/communicator.h"
#include "tools/dist_test/workload.h"

namespace plait::dist_test {

struct StepSummary {
  int iter = 0;
  StepTimes times;       // of this rank
  double loss = 0;       // mean over ranks
  double sps = 0;        // samples of this rank per second
  double sps_world = 0;  // samples of all ranks per second of the slowest
};

// Collective: one all-gather.
StepSummary SummarizeStep(const comm::Communicator& world, int iter, std::int64_t batch_size,
                          const StepTimes& times);

// "iter=1, loss=2152.41, sps=1.697e+04, dt=0.00377066, dtf=0.001003, dtb=0.002768, sps_world=6.78e+04"
std::string StepLine(const StepSummary& step);

}  // namespace plait::dist_test

#endif  // PLAIT_TOOLS_DIST_TEST_STEP_SUMMARY_H_
