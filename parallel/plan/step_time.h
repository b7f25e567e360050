// How long a training step takes on a cluster, term by term.
//
//   const StepTime time = TimeOf(plan, bytes, states, PipelineSeconds(plan, bytes, cluster), cluster);
//   time.total();                              // seconds
//   std::cout << StepTimeText(time);           // a line per term
//
// The terms of the rank of pp whose micro-batches take longest, M micro-batches in a step:
//
//   products        M x FLOPs of its stages / (cp tp) / FLOP/s
//   activations     M x bytes of kept activations / activation bandwidth
//   gradients       M x 2 e P / memory bandwidth: each gradient goes to its flat buffer, P numbers of e bytes
//   tp, cp          messages of its blocks and ends, where they are exposed
//   gathers         of parameters, where they are exposed: fsdp's of every pass, zero's of one step
//   pipeline        what the simulator adds: bubble, messages between stages, waiting for a slower stage
//   reductions      of gradients along dp_shard and dp_replicate, where they are exposed
//   partial sums    of gradients along tp and pp_ends
//   optimizer       8 e P / N (AdamW: reads four, writes three; the norm reads one) + 2 c P / N for a narrower c
//   shared          ranks that share processors: what the work of all of them takes beyond the above
//
// A message of w bytes over a link takes latency x steps + w / bandwidth: steps are log2 N, twice that for an
// all-reduce, 1 for a message, N - 1 for an all-to-all; the link is the node's where all ranks of the axis are on it,
// else their share of the one between nodes. Ranks are numbered with tp innermost. Where messages overlap
// (Cluster::messages_overlap) the engine hides: gathers behind the block before, reductions behind the backward of
// what is left, tp's input gradients behind the products for the weights, a ring's keys behind attention. Local.
#ifndef PLAIT_PARALLEL_PLAN_STEP_TIME_H_
#define PLAIT_PARALLEL_PLAN_STEP_TIME_H_

#include <string>
#include <vector>

#include "parallel/plan/cluster.h"
#include "parallel/plan/pass_memory.h"
#include "parallel/plan/traffic.h"

namespace plait::parallel {

struct StepTime {
  double products = 0, activations = 0, gradients = 0, tp = 0, cp = 0, gathers = 0;
  double pipeline = 0, reductions = 0, partial_sums = 0, optimizer = 0, shared = 0;

  // Of micro-batches, without waiting.
  double work() const { return products + activations + gradients + tp + cp + gathers; }
  double after() const { return reductions + partial_sums + optimizer; }
  double total() const { return work() + pipeline + after() + shared; }
};

// Seconds of a call (of all of its count).
double SecondsOf(const Call& call, const PlannedRun& run, const Cluster& cluster);

// "float32": of Cluster::flops.
std::string TypeName(at::ScalarType type);

// Ranks of pp whose states differ: both ends, and the one between them with most blocks.
std::vector<int> RanksThatDiffer(const StepPlan& plan);

// The term `pipeline`. It follows from pp, cp, tp, micro-batches and schedule alone. The cluster has the compute type's
// FLOP/s.
double PipelineSeconds(const StepPlan& plan, const PassBytes& bytes, const Cluster& cluster);

// `bytes`: PassMemory of the run. `states`: StateCallsOf of RanksThatDiffer, in that order.
StepTime TimeOf(const StepPlan& plan, const PassBytes& bytes, const std::vector<StateCalls>& states,
                double pipeline_seconds, const Cluster& cluster);

// A line per term that is not zero, with its share.
std::string StepTimeText(const StepTime& time);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_STEP_TIME_H_
