// The output of plan. Local.
#ifndef PLAIT_TOOLS_PLAN_PARTS_REPORT_H_
#define PLAIT_TOOLS_PLAN_PARTS_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/plan/advice.h"
#include "parallel/plan/cluster.h"
#include "parallel/plan/mesh_search.h"

namespace plait::planning {

// Model, with its number of parameters, and cluster, one line each.
std::string HeadingText(const parallel::PlannedModel& model, std::int64_t parameters,
                        const parallel::Cluster& cluster);

// A row for each of the first `top` estimates: mesh, strategy (+sp: sequence parallel, *: reduces each micro-batch),
// micro-batches x samples, GB per rank, whether it fits, ms per step, tokens per second, bytes that rank 0 sends per
// axis.
std::string TableText(const std::vector<parallel::Estimate>& estimates, std::size_t top,
                      const parallel::PlannedModel& model, const parallel::Cluster& cluster);

// Memory, traffic and time of one estimate, term by term.
std::string ExplanationText(const parallel::Estimate& estimate, const parallel::PlannedModel& model);

// The choice, its reasons, and the flags of the fastest mesh that fits.
std::string AdviceText(const parallel::Advice& advice);

// The flags of the trainer that run an estimate: "--mesh=dp_shard=8 --strategy=fsdp ...".
std::string FlagsText(const parallel::PlannedRun& run);

}  // namespace plait::planning

#endif  // PLAIT_TOOLS_PLAN_PARTS_REPORT_H_
