// When the batch system will end the job.
//
//   const std::optional<double> end = JobEndSeconds(start_seconds, /*limit_seconds=*/0, lookup);
#ifndef PLAIT_PARALLEL_CHECKPOINT_WALLTIME_H_
#define PLAIT_PARALLEL_CHECKPOINT_WALLTIME_H_

#include <functional>
#include <optional>
#include <string>

namespace plait::parallel {

// Seconds since 1970 at which this process was started (proc(5), /proc/self/stat, field 22), to about a second; the
// present time where that cannot be read.
double ProcessStartSeconds();

// Returns the value of an environment variable, or null if it is not set, as std::getenv does.
using EnvironmentLookup = std::function<const char*(const char* name)>;

// In seconds since 1970; nullopt if no limit is known. The earliest of
//   start_seconds + limit_seconds          if limit_seconds > 0 (a flag of the program)
//   SLURM_JOB_END_TIME, COBALT_ENDTIME     seconds since 1970
//   start_seconds + PBS_WALLTIME           seconds, counted from start_seconds; the job started earlier than its
//                                          programs, and SavePolicyOptions::margin_seconds must cover the difference
// Variables whose value is not a positive number are ignored.
std::optional<double> JobEndSeconds(double start_seconds, double limit_seconds,
                                    const EnvironmentLookup& lookup);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_WALLTIME_H_
