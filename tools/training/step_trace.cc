#include "tools/training/step_trace.h"

#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <fstream>

#include "data/trace/trace.h"

namespace plait::training {
namespace {

constexpr const char* kNames[] = {"forward", "backward", "input gradients", "weight gradients"};

// Resident memory of this process; 0 if unknown.
double ResidentMegabytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  file >> all >> resident;
  return 1e-6 * static_cast<double>(resident * sysconf(_SC_PAGESIZE));
}

}  // namespace

void TraceStep(const StepReport& report, const std::vector<parallel::ActionTime>& timeline, bool writes,
               rank_history::RankTrace& of_ranks) {
  data::Trace* const trace = of_ranks.trace();
  if (trace == nullptr) return;
  const auto before = [&report](double seconds) {
    return std::llround(1e9 * (report.end_seconds - seconds));
  };
  const std::int64_t end = before(0);
  for (const parallel::ActionTime& time : timeline) {
    trace->Add(kNames[static_cast<int>(time.action.kind)], 0, time.begin_ns, time.end_ns,
               {.stage = time.action.stage, .micro_batch = time.action.micro_batch});
    if (time.waited_ns > 0) trace->Add("waiting", 0, time.begin_ns, time.begin_ns + time.waited_ns);
  }
  trace->Add("optimizer", 0, before(report.optimizer_seconds), end);
  trace->Add("step", 0, before(report.dt_seconds), end, {.step = report.step});
  trace->Count("memory, MB", end, ResidentMegabytes());
  if (writes) {
    trace->Count("loss", end, report.loss);
    trace->Count("gradient_norm", end, report.gradient_norm);
  }
  of_ranks.TakeCalls();
}

}  // namespace plait::training
