// The replayed work is that of LayerParallel: per rank, in steps per level, kinds of work and messages. Of blocks that
// autograd differentiates; those of a step with kernels of its own are in tests/benchmarks/gru_work_test.cc.
#include "mgrit/scaling/work_trace.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/operation.h"
#include "comm/stats.h"
#include "comm/testing/world.h"
#include "mgrit/layer_parallel/testing/residual.h"

namespace plait::mgrit::scaling {
namespace {

using testing::kWidth;
using testing::LossOf;
using testing::Numbers;
using testing::Residual;

LayerParallelOptions Options(int levels, std::vector<int> cfactors, int forward, int backward,
                             bool fmg = false, bool skip = true, std::vector<int> sweeps = {0, 1}) {
  LayerParallelOptions options = MakeLayerParallelOptions(levels, cfactors[0], forward, backward);
  for (mgrit::Options* direction : {&options.forward, &options.backward}) {
    direction->cfactors = cfactors;
    direction->fmg = fmg;
    direction->skip_downcycle = skip;
    direction->cf_sweeps = sweeps;
  }
  return options;
}

std::vector<LayerParallelOptions> Solvers() {
  std::vector<LayerParallelOptions> solvers = {Options(1, {4}, 1, 1, false, false)};
  const std::pair<int, std::vector<int>> grids[] = {
      {2, {4}}, {3, {4}}, {3, {2, 3}}, {4, {2, 3, 2}}, {2, {3}}};
  for (const auto& [levels, cfactors] : grids) {
    solvers.push_back(Options(levels, cfactors, 2, 1));
    solvers.push_back(Options(levels, cfactors, 1, 2, /*fmg=*/true));
    solvers.push_back(Options(levels, cfactors, 3, 2, /*fmg=*/false, /*skip=*/false, {1}));
  }
  return solvers;
}

// Two batches, so that state left over from the first would show in the second.
void RunTwo(LayerParallel& net, const BatchShape& shape) {
  net.set_propagation(shape.propagation);
  for (int batch = 0; batch < 2; ++batch) {
    net.ResetWorkTimes();
    const at::Tensor u = Numbers({2, kWidth}, 5).requires_grad_(shape.wants_input_gradient);
    LossOf(net.Forward(u)).backward();
  }
}

void ExpectSameWork(LayerParallel& net, const BatchShape& shape, const std::string& where) {
  RunTwo(net, shape);
  const RankTrace trace = TraceBatch(shape)[comm::testing::World().rank()];
  EXPECT_EQ(trace.forward_steps, net.last_forward().work.steps) << where;
  EXPECT_EQ(trace.backward_steps, net.last_backward().work.steps) << where;
  EXPECT_EQ(trace.forward_messages, net.last_forward().work.messages) << where;
  EXPECT_EQ(trace.backward_messages, net.last_backward().work.messages) << where;
  const WorkCounts counts = net.work_times().counts;
  for (std::size_t kind = 0; kind < kWorkKinds; ++kind) {
    EXPECT_EQ(trace.work.values[kind], counts.values[kind]) << where << " " << kWorkNames[kind];
  }
}

// Calls of each operation.
std::array<std::int64_t, comm::kOperations> CallsOf(const comm::Communicator& communicator) {
  std::array<std::int64_t, comm::kOperations> calls{};
  for (const auto& [axis, operations] : communicator.stats()) {
    for (std::size_t i = 0; i < calls.size(); ++i) calls[i] += operations[i].calls;
  }
  return calls;
}

TEST(WorkTrace, CountsAreThoseOfTheSolver) {
  const comm::Communicator& world = comm::testing::World();
  int number = 0;
  for (const LayerParallelOptions& solver : Solvers()) {
    for (const std::int64_t steps : {24, 17}) {
      for (const Propagation propagation : {Propagation::kParallel, Propagation::kSerial}) {
        BatchShape shape = {.solver = solver,
                            .steps = steps,
                            .ranks = world.size(),
                            .propagation = propagation,
                            .linearises_ahead = true,
                            .wants_input_gradient = ++number % 2 == 0};
        const std::string where = "solver " + std::to_string(number) + " steps " + std::to_string(steps) +
                                  " rank " + std::to_string(world.rank()) +
                                  (propagation == Propagation::kSerial ? " serial" : "");
        LayerParallel recurrent(world, std::make_shared<Residual>(1), steps, 1.5, solver);
        ASSERT_EQ(recurrent.linearises_ahead(), shape.linearises_ahead);
        ExpectSameWork(recurrent, shape, where + " one block for all");
        shape.shares_parameters = false;
        LayerParallel deep(
            world, [](std::int64_t step) { return std::make_shared<Residual>(10 + step); }, steps, 1.5,
            solver);
        ASSERT_EQ(deep.shared_parameters(), 0);
        ExpectSameWork(deep, shape, where + " a block per step");
      }
    }
  }
}

// Sends of the traces, in the solves and in the sum of gradients, and its collectives are those that the communicator
// counts.
TEST(WorkTrace, CallsAreThoseOfTheCommunicator) {
  const comm::Communicator& world = comm::testing::World();
  for (const bool shares : {true, false}) {
    for (const bool wants : {true, false}) {
      const BatchShape shape = {.solver = Options(2, {4}, 2, 2),
                                .steps = 24,
                                .ranks = world.size(),
                                .linearises_ahead = true,
                                .shares_parameters = shares,
                                .wants_input_gradient = wants};
      LayerParallel net = shares
                              ? LayerParallel(world, std::make_shared<Residual>(1), 24, 1.5, shape.solver)
                              : LayerParallel(
                                    world, [](std::int64_t step) { return std::make_shared<Residual>(step); },
                                    24, 1.5, shape.solver);
      RunTwo(net, shape);
      const auto before = CallsOf(world);
      RunTwo(net, shape);
      const auto after = CallsOf(world);
      std::int64_t sends = 0, receives = 0, collectives = 0;
      const RankTrace trace = TraceBatch(shape)[world.rank()];
      for (const Event& event : trace.events) {
        sends += event.type == Event::Type::kSend;
        receives += event.type == Event::Type::kReceive;
        collectives += event.type == Event::Type::kCollective;
      }
      std::int64_t sent = 0, received = 0, others = 0;
      for (std::size_t i = 0; i < after.size(); ++i) {
        const auto operation = static_cast<comm::Operation>(i);
        const bool is_send = operation == comm::Operation::kSend,
                   is_receive = operation == comm::Operation::kReceive;
        (is_send ? sent : is_receive ? received : others) += after[i] - before[i];
      }
      EXPECT_EQ(2 * sends, sent);
      EXPECT_EQ(2 * receives, received);
      // Collectives on one rank send nothing and are not part of the trace.
      EXPECT_EQ(2 * collectives, world.size() > 1 ? others : 0);
    }
  }
}

// Between two ranks messages are received in the order in which they are sent: transports without tags (NCCL)
// match them by order.
TEST(WorkTrace, MessagesPairUpInOrder) {
  int number = 0;
  for (const LayerParallelOptions& solver : Solvers()) {
    const BatchShape shape = {
        .solver = solver, .steps = 97, .ranks = 7, .shares_parameters = ++number % 2 == 0};
    std::map<std::pair<int, int>, std::vector<int>> sent, received;  // tags by sender and receiver
    const std::vector<RankTrace> traces = TraceBatch(shape);
    for (int rank = 0; rank < shape.ranks; ++rank) {
      for (const Event& event : traces[rank].events) {
        if (event.type == Event::Type::kSend) sent[{rank, event.peer}].push_back(event.tag);
        if (event.type == Event::Type::kReceive) received[{event.peer, rank}].push_back(event.tag);
      }
    }
    EXPECT_EQ(sent, received) << "solver " << number;
  }
}

}  // namespace
}  // namespace plait::mgrit::scaling
