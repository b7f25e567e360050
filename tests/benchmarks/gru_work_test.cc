// The replayed work of a layer-parallel GRU is that of the real one: per rank, in steps per level, kinds of work and
// messages; coarse steps have several evaluations.
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/testing/world.h"
#include "mgrit/scaling/work_trace.h"
#include "models/gru/layer_parallel/layer_parallel_gru.h"
#include "models/gru/parameters.h"
#include "tests/benchmarks/setting.h"

namespace plait::benchmarks {
namespace {

using mgrit::WorkKind;
using mgrit::scaling::RankTrace;
using mgrit::scaling::TraceBatch;

struct Real {
  mgrit::WorkCount forward;
  mgrit::WorkCount backward;
  mgrit::WorkCounts kinds;
};

// Two batches, so that what one leaves behind would show in the next.
Real Solve(const Setting& setting, std::int64_t steps, const comm::Communicator& world) {
  const gru::GruConfig config = {.input = 2, .hidden = 3, .layers = 2, .kind = gru::GruKind::kImplicit};
  const auto module = gru::NewGruParameters(config, at::kDouble);
  gru::LayerParallelGru net([&] { return module->parameters(); }, config, at::kDouble, world, steps,
                            static_cast<double>(steps), setting.solver, setting.step);
  for (int batch = 0; batch < 2; ++batch) {
    net.solver().ResetWorkTimes();
    net.Forward(at::randn({1, steps, 2}, at::kDouble)).sum().backward();
  }
  return {net.solver().last_forward().work, net.solver().last_backward().work,
          net.solver().work_times().counts};
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

TEST(GruWork, CountsAreThoseOfTheSolver) {
  const comm::Communicator& world = comm::testing::World();
  for (const std::string& text : Settings()) {
    for (const std::int64_t steps : {64, 45, 24}) {
      const Setting setting = *ParseSetting(text);
      const Real real = Solve(setting, steps, world);
      const RankTrace trace = TraceBatch(ShapeOf(setting, steps, world.size()))[world.rank()];
      const std::string where =
          text + " steps " + std::to_string(steps) + " rank " + std::to_string(world.rank());
      EXPECT_EQ(trace.forward_steps, real.forward.steps) << where;
      EXPECT_EQ(trace.backward_steps, real.backward.steps) << where;
      EXPECT_EQ(Evaluations(setting, real.forward.steps), real.kinds[WorkKind::kFineStep] +
                                                              real.kinds[WorkKind::kKeptFineStep] +
                                                              real.kinds[WorkKind::kCoarseStep])
          << where;
      EXPECT_EQ(trace.forward_messages, real.forward.messages) << where;
      EXPECT_EQ(trace.backward_messages, real.backward.messages) << where;
      for (std::size_t kind = 0; kind < mgrit::kWorkKinds; ++kind) {
        EXPECT_EQ(trace.work.values[kind], real.kinds.values[kind])
            << where << " " << mgrit::kWorkNames[kind];
      }
    }
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
