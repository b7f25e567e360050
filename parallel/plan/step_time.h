// Predicts the time of a training step on a cluster, term by term.
//
//   const StepTime time = TimeOf(plan, bytes, states, PipelineSeconds(plan, bytes, cluster), cluster);
//   time.total();                              // seconds
//   std::cout << StepTimeText(time);           // a line per term
//
// M micro-batches in a step. Terms up to `gathers` are those of the rank of pp whose micro-batches take longest;
// reductions, partial sums and optimizer those of the rank where these three take longest:
//
//   products        M x FLOPs of its stages per micro-batch / (cp tp) / FLOP/s
//   activations     M x bytes of saved activations / activation bandwidth of the type
//   calls           M x its blocks x fixed cost of a block (Cluster::block_seconds)
//   gradients       M x 2 e P / memory bandwidth: each gradient is copied to its flat buffer, P elements of e bytes
//   tp, cp          exposed communication of its blocks and ends
//   gathers         exposed all-gathers of parameters: fsdp's of every pass, zero's once per step
//   pipeline        what the simulator adds: bubble, messages between stages, waiting for a slower stage
//   reductions      exposed reductions of gradients along dp_shard and dp_replicate
//   partial sums    of gradients along tp and pp_ends
//   optimizer       8 e P / N (AdamW: reads four, writes three; the norm reads one), SGD 4 e P / N; mixed precision:
//                   + 2 c P / N
//   shared          if ranks share processors: what the work of all of them takes beyond the above
//
// Sending w bytes over a link takes latency x steps + w / bandwidth, where steps is ceil(log2 N), twice that for an
// all-reduce, 1 for a point-to-point message, N - 1 for an all-to-all. The link is within_node if all ranks of the axis
// are on one node, else their share of between_nodes. Ranks are numbered with tp innermost. If messages overlap
// (Cluster::messages_overlap), hidden are: gathers behind the computation of earlier blocks, reductions behind the rest
// of backward, tp's reductions of input gradients behind the products for weight gradients, a ring's keys behind
// attention. Local.
#ifndef PLAIT_PARALLEL_PLAN_STEP_TIME_H_
#define PLAIT_PARALLEL_PLAN_STEP_TIME_H_

#include <string>
#include <vector>

#include "parallel/plan/cluster.h"
#include "parallel/plan/pass_memory.h"
#include "parallel/plan/traffic.h"

namespace plait::parallel {

struct StepTime {
  double products = 0, activations = 0, calls = 0, gradients = 0, tp = 0, cp = 0, gathers = 0;
  double pipeline = 0, reductions = 0, partial_sums = 0, optimizer = 0, shared = 0;

  // The micro-batches, without pipeline waits.
  double work() const { return products + activations + calls + gradients + tp + cp + gathers; }
  double after() const { return reductions + partial_sums + optimizer; }
  double total() const { return work() + pipeline + after() + shared; }
};

// Seconds of all call.count calls, without overlap.
double SecondsOf(const Call& call, const PlannedRun& run, const Cluster& cluster);

// The key of Cluster::flops: "float32", "float64", "bfloat16", "float16".
std::string TypeName(at::ScalarType type);

// Ranks of pp whose states differ: both ends, and the one between them with the most blocks.
std::vector<int> RanksThatDiffer(const StepPlan& plan);

// The term `pipeline`. For a given number of ranks it depends only on pp, cp, tp, the schedule, and the number and size
// of micro-batches, not on the strategy. cluster.flops must have the compute type.
double PipelineSeconds(const StepPlan& plan, const PassBytes& bytes, const Cluster& cluster);

// `bytes`: PassMemory::Of(plan.run). `states`: StateCallsOf for each of RanksThatDiffer, in that order.
StepTime TimeOf(const StepPlan& plan, const PassBytes& bytes, const std::vector<StateCalls>& states,
                double pipeline_seconds, const Cluster& cluster);

// One line per nonzero term: milliseconds and percentage of the total.
std::string StepTimeText(const StepTime& time);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_STEP_TIME_H_
