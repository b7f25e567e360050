// When the batch system will end the job.
//
//   const std::optional<double> end = JobEndSeconds(start_seconds, /*limit_seconds=*/0, lookup);
#ifndef PLAIT_PARALLEL_CHECKPOINT_WALLTIME_H_
#define PLAIT_PARALLEL_CHECKPOINT_WALLTIME_H_

#include <functional>
#include <optional>
#include <string>

namespace plait::parallel {

// Value of an environment variable; null where it is not set. `std::getenv` is one.
using EnvironmentLookup = std::function<const char*(const char* name)>;

// In seconds since 1970; nothing where no limit is known. The earliest of
//   start_seconds + limit_seconds          where limit_seconds > 0 (a flag of the program)
//   SLURM_JOB_END_TIME, COBALT_ENDTIME     seconds since 1970
//   start_seconds + PBS_WALLTIME           seconds, counted from when the program began: the job began
//   earlier,
//                                          which the policy's margin must cover
// What is no positive number is not there.
std::optional<double> JobEndSeconds(double start_seconds, double limit_seconds,
                                    const EnvironmentLookup& lookup);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_WALLTIME_H_
