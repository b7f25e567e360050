// The replayed work is that of the real solver: per rank, in steps per level, kinds of work and messages.
#include "tests/benchmarks/work_trace.h"

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/testing/world.h"
#include "models/gru/layer_parallel/layer_parallel_gru.h"
#include "models/gru/parameters.h"
#include "tests/benchmarks/timed_work.h"

namespace plait::benchmarks {
namespace {

struct Real {
  mgrit::WorkCount forward;
  mgrit::WorkCount backward;
  WorkCounts kinds;
};

// Two batches, so that what one leaves behind would show in the next.
Real Solve(const BatchShape& shape, const comm::Communicator& world) {
  const gru::GruConfig config = {.input = 2, .hidden = 3, .layers = 2, .kind = gru::GruKind::kImplicit};
  const auto module = gru::NewGruParameters(config, at::kDouble);
  const auto work = std::make_shared<TimedWork>(shape.setting.step);
  gru::LayerParallelGru net([&] { return module->parameters(); }, config, at::kDouble, world, shape.steps,
                            static_cast<double>(shape.steps), shape.setting.solver, shape.setting.step,
                            [&](std::shared_ptr<mgrit::TensorStep> step) { return work->Around(step); });
  for (int batch = 0; batch < 2; ++batch) {
    work->Reset();
    net.Forward(at::randn({1, shape.steps, 2}, at::kDouble)).sum().backward();
  }
  return {net.solver().last_forward().work, net.solver().last_backward().work, work->Counts()};
}

std::vector<std::string> Settings() {
  std::vector<std::string> settings;
  for (const char* grid :
       {"levels=3/cfactor=4", "levels=2/cfactor=8", "levels=4/cfactor=2,3,2", "levels=2/cfactor=3"}) {
    for (const char* work :
         {"/iterations=2,1", "/iterations=1,1/fmg=1/sweeps=0", "/iterations=3,2/skip=0/sweeps=1",
          "/iterations=2,2/fmg=1/hold=2", "/iterations=2,3/sweeps=0/step=frozen/hold=3,1",
          "/iterations=1,2/sweeps=2,0/bsweeps=1,2/bfmg=1"}) {
      settings.push_back(std::string(grid) + work);
    }
  }
  return settings;
}

TEST(WorkTrace, CountsAreThoseOfTheSolver) {
  const comm::Communicator& world = comm::testing::World();
  for (const std::string& text : Settings()) {
    for (const std::int64_t steps : {64, 45, 24}) {
      const BatchShape shape = {.setting = *ParseSetting(text), .steps = steps, .ranks = world.size()};
      const Real real = Solve(shape, world);
      const RankTrace trace = TraceBatch(shape)[world.rank()];
      const std::string where =
          text + " steps " + std::to_string(steps) + " rank " + std::to_string(world.rank());
      EXPECT_EQ(trace.forward_steps, real.forward.steps) << where;
      EXPECT_EQ(trace.backward_steps, real.backward.steps) << where;
      EXPECT_EQ(Evaluations(shape.setting, real.forward.steps), real.kinds[WorkKind::kFineStep] +
                                                                    real.kinds[WorkKind::kKeptFineStep] +
                                                                    real.kinds[WorkKind::kCoarseStep])
          << where;
      EXPECT_EQ(trace.forward_messages, real.forward.messages) << where;
      EXPECT_EQ(trace.backward_messages, real.backward.messages) << where;
      for (std::size_t kind = 0; kind < kWorkKinds; ++kind) {
        EXPECT_EQ(trace.work.values[kind], real.kinds.values[kind]) << where << " " << kWorkNames[kind];
      }
    }
  }
}

// Between two ranks messages are received in the order in which they are sent: transports without tags (NCCL)
// match them by order.
TEST(WorkTrace, MessagesPairUpInOrder) {
  for (const std::string& text : Settings()) {
    const BatchShape shape = {.setting = *ParseSetting(text), .steps = 97, .ranks = 7};
    std::map<std::pair<int, int>, std::vector<int>> sent, received;  // tags by sender and receiver
    const std::vector<RankTrace> traces = TraceBatch(shape);
    for (int rank = 0; rank < shape.ranks; ++rank) {
      for (const Event& event : traces[rank].events) {
        if (event.type == Event::Type::kSend) sent[{rank, event.peer}].push_back(event.tag);
        if (event.type == Event::Type::kReceive) received[{event.peer, rank}].push_back(event.tag);
      }
    }
    EXPECT_EQ(sent, received) << text;
  }
}

TEST(Setting, TextIsReadBack) {
  for (const std::string& text : Settings()) {
    const std::string shown = TextOf(*ParseSetting(text));
    EXPECT_EQ(TextOf(*ParseSetting(shown)), shown);
    EXPECT_NE(shown.find(text.substr(0, text.find("/iterations"))), std::string::npos) << shown;
  }
  EXPECT_FALSE(ParseSetting("levels=three").ok());
  EXPECT_FALSE(ParseSetting("depth=3").ok());
  EXPECT_FALSE(ParseSetting("step=two").ok());
  EXPECT_FALSE(ParseSetting("hold=a").ok());
}

}  // namespace
}  // namespace plait::benchmarks
