#include "tools/dist_test/step_summary.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"

namespace plait::dist_test {

StepSummary SummarizeStep(const comm::Communicator& world, int iter, std::int64_t batch_size,
                          const StepTimes& times) {
  const double mine[2] = {times.loss, times.dt()};
  std::vector<double> all(2 * world.size());
  world.AllGather(comm::ConstBufferOf(absl::MakeConstSpan(mine)), comm::BufferOf(absl::MakeSpan(all)));
  StepSummary step = {.iter = iter, .times = times};
  double slowest = 0;
  for (int rank = 0; rank < world.size(); ++rank) {
    step.loss += all[2 * rank] / world.size();
    slowest = std::max(slowest, all[2 * rank + 1]);
  }
  const auto samples = static_cast<double>(batch_size);
  step.sps = samples / times.dt();
  step.sps_world = samples * world.size() / slowest;
  return step;
}

std::string StepLine(const StepSummary& step) {
  return absl::StrFormat("iter=%d, loss=%.6g, sps=%.4g, dt=%.6g, dtf=%.4g, dtb=%.4g, sps_world=%.4g",
                         step.iter, step.loss, step.sps, step.times.dt(), step.times.dtf(), step.times.dtb(),
                         step.sps_world);
}

}  // namespace plait::dist_test
