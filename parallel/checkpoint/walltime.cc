#include "parallel/checkpoint/walltime.h"

#include <algorithm>

#include "absl/strings/numbers.h"

namespace plait::parallel {

std::optional<double> JobEndSeconds(double start_seconds, double limit_seconds,
                                    const EnvironmentLookup& lookup) {
  std::optional<double> end;
  const auto take = [&](double seconds) { end = end ? std::min(*end, seconds) : seconds; };
  const auto take_variable = [&](const char* name, double since) {
    const char* text = lookup(name);
    double seconds = 0;
    if (text != nullptr && absl::SimpleAtod(text, &seconds) && seconds > 0) take(since + seconds);
  };
  if (limit_seconds > 0) take(start_seconds + limit_seconds);
  take_variable("SLURM_JOB_END_TIME", 0);
  take_variable("COBALT_ENDTIME", 0);
  take_variable("PBS_WALLTIME", start_seconds);
  return end;
}

}  // namespace plait::parallel
