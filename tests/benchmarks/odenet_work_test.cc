// The replayed work of layer-parallel residual networks is that of the real ones, and the log of their runs says where all
// of their time went: read back, it predicts the run that it is of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "comm/testing/world.h"
#include "mgrit/scaling/work_trace.h"
#include "tests/benchmarks/fastest_ways.h"
#include "tests/benchmarks/measurements.h"
#include "tests/benchmarks/odenet_run.h"
#include "tests/benchmarks/step_lines.h"

namespace plait::benchmarks {
namespace {

using mgrit::MakeLayerParallelOptions;
using mgrit::WorkKind;
using mgrit::scaling::RankTrace;
using ::testing::HasSubstr;

std::vector<mgrit::LayerParallelOptions> Solvers() {
  return {MakeLayerParallelOptions(2, 4, 2, 1), MakeLayerParallelOptions(3, 4, 2, 1),
          MakeLayerParallelOptions(2, 2, 3, 2), MakeLayerParallelOptions(4, 2, 1, 3)};
}

std::string WriteLog(const std::string& name, const std::string& text) {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/", name, comm::testing::World().rank(), ".txt");
  std::ofstream(path) << text;
  return path;
}

// Own parameters by layer, activations recorded ahead; the example's opening layer is not trained.
TEST(OdeNetWork, CountsAreThoseOfTheSolver) {
  const comm::Communicator& world = comm::testing::World();
  for (const char* const problem : {"peaks", "torchbraid"}) {
    for (const mgrit::LayerParallelOptions& solver : Solvers()) {
      for (const std::int64_t layers : {24, 18}) {
        const OdeNetCase example =
            *OpenCase({.problem = problem, .layers = layers, .channels = 2, .batch = 3}, world);
        OdeNetRun run(example, solver, world);
        run.RunBatch();
        run.solver().ResetWorkTimes();
        run.RunBatch();
        const Measurements kind = {.linearises_ahead = true,
                                   .shares_parameters = false,
                                   .wants_input_gradient = std::string(problem) == "peaks"};
        const mgrit::scaling::BatchShape shape =
            ShapeFor(kind, *ParseSetting(TextOf(solver)), layers, world.size());
        const RankTrace trace = TraceBatch(shape)[static_cast<std::size_t>(world.rank())];
        const std::string where =
            absl::StrCat(problem, " ", TextOf(solver), " layers ", layers, " rank ", world.rank());
        EXPECT_EQ(trace.forward_steps, run.solver().last_forward().work.steps) << where;
        EXPECT_EQ(trace.backward_steps, run.solver().last_backward().work.steps) << where;
        EXPECT_EQ(trace.forward_messages, run.solver().last_forward().work.messages) << where;
        EXPECT_EQ(trace.backward_messages, run.solver().last_backward().work.messages) << where;
        const mgrit::WorkCounts counts = run.solver().work_times().counts;
        for (std::size_t kind_of = 0; kind_of < mgrit::kWorkKinds; ++kind_of) {
          EXPECT_EQ(trace.work.values[kind_of], counts.values[kind_of])
              << where << " " << mgrit::kWorkNames[kind_of];
        }
      }
    }
  }
}

double NumberIn(const std::string& line, const std::string& key) {
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(line, ' '))) {
    const std::vector<std::string> parts = absl::StrSplit(word, '=');
    double value = 0;
    if (parts[0] == key && absl::SimpleAtod(parts.back(), &value)) return value;
  }
  ADD_FAILURE() << "no " << key << " in " << line;
  return 0;
}

// All of a batch's time on one rank is in some cost: pieces of work times their number, and what is around them, are the
// sum of the parts that the stopwatch saw, however fast the machine is.
TEST(OdeNetWork, CostsAddUpToTheBatch) {
  for (const mgrit::LayerParallelOptions& solver : Solvers()) {
    const OdeNetCase example =
        *OpenCase({.problem = "peaks", .layers = 32, .batch = 16}, comm::Communicator::Self());
    OdeNetRun run(example, solver, comm::Communicator::Self());
    ::testing::internal::CaptureStdout();
    MeasureSteps(run, TextOf(solver), {.batches = 4, .warmup = 1});
    const std::string text = ::testing::internal::GetCapturedStdout();
    EXPECT_GT(run.solver().last_forward().seconds, 0);
    EXPECT_GT(run.solver().last_backward().seconds, 0);
    const std::vector<std::string> lines = absl::StrSplit(text, '\n');
    ASSERT_THAT(lines[1], HasSubstr("lp_step"));
    const double batch = NumberIn(lines[1], "forward") + NumberIn(lines[1], "head") +
                         NumberIn(lines[1], "backward") - NumberIn(lines[1], "messages");
    const Measurements all = (*ReadMeasurements(WriteLog("costs", text)))[0];
    ASSERT_EQ(all.costs.size(), 1u);
    EXPECT_EQ(all.problem, "peaks");
    EXPECT_EQ(all.parallel[0].setting, TextOf(solver));
    EXPECT_TRUE(all.linearises_ahead && !all.shares_parameters && all.wants_input_gradient);
    const mgrit::scaling::BatchShape shape = ShapeFor(all, *ParseSetting(all.parallel[0].setting), 32, 1);
    mgrit::scaling::Costs costs = CostsFor(all, TextOf(solver), 32);
    // As printed: a piece that seemed to take nothing, beside a busy machine, is not another kind's.
    for (std::size_t kind = 0; kind < mgrit::kWorkKinds; ++kind) {
      const std::string name = absl::StrCat(" ", mgrit::kWorkNames[kind], "=");
      costs.work.values[kind] =
          absl::StrContains(lines[2], name) ? NumberIn(lines[2], mgrit::kWorkNames[kind]) : 0;
    }
    const double predicted = PredictBatch(shape, costs, {.cores = 1});
    // Figures are printed to a microsecond, costs of the pieces, of which there are hundreds, to a nanosecond.
    EXPECT_NEAR(predicted, batch, 5e-6);
  }
}

constexpr char kLog[] = R"(# two problems and a line of another program
serial_step ranks=1 steps=64 problem=peaks batch=64 data=real setting=serial median=0.010 min=0.009 max=0.011
lp_step ranks=1 steps=64 problem=peaks batch=64 data=real setting=A median=0.030 min=0.02 max=0.04 processor=0.031
lp_costs ranks=1 steps=64 problem=peaks batch=64 data=real setting=A fine_step=2e-6 gradient=3e-6 state_bytes=2048 gradient_bytes=0 ahead=1 shared=0 input_gradient=1 inputs=0 head=0.002 solver=4e-7 sum=5e-7
lp_step ranks=2 steps=64 problem=peaks batch=64 data=real setting=A median=0.020 min=0.02 max=0.04 processor=0.019
messages ranks=2 problem=peaks batch=64 data=real latency=1e-6 per_byte=1e-10 contention=1.25 hand_over=1e-5
messages ranks=4 problem=peaks batch=64 data=real latency=1e-3 per_byte=1e-3 contention=2 hand_over=7e-4
lp_bias ranks=1 steps=64 problem=peaks batch=64 data=real setting=A trained=9 bias=0.125
odenet_step step=0 loss=2 dt=0.1 cpu=0.1
serial_step ranks=1 steps=128 batch=100 hidden=100 setting=serial median=0.08 min=0.08 max=0.08
lp_costs ranks=1 steps=128 batch=100 hidden=100 setting=B kept_fine_step=1e-4 head=0.001
)";

TEST(Measurements, LogIsReadBack) {
  const std::vector<Measurements> all = *ReadMeasurements(WriteLog("log", kLog));
  ASSERT_EQ(all.size(), 2u);
  const Measurements& peaks = all[0];
  EXPECT_EQ(peaks.problem, "peaks");
  EXPECT_EQ(peaks.batch, 64);
  EXPECT_EQ(peaks.data, "real");
  ASSERT_EQ(peaks.parallel.size(), 2u);
  EXPECT_EQ(peaks.parallel[1].ranks, 2);
  EXPECT_EQ(peaks.parallel[1].seconds, 0.020);
  EXPECT_EQ(peaks.parallel[1].processor, 0.019);
  const mgrit::scaling::Costs costs = CostsFor(peaks, "A", 64);
  EXPECT_EQ(costs.work[WorkKind::kFineStep], 2e-6);
  EXPECT_EQ(costs.work[WorkKind::kCoarseStep], 2e-6);  // as the nearest kind
  EXPECT_EQ(costs.work[WorkKind::kGradient], 3e-6);
  EXPECT_EQ(costs.solver, 4e-7);
  EXPECT_EQ(costs.sum, 5e-7);
  EXPECT_EQ(costs.state_bytes, 2048);
  EXPECT_EQ(costs.latency, 1e-6);  // of as many ranks as cores
  EXPECT_EQ(peaks.contention, 1.25);
  EXPECT_EQ(peaks.hand_over, 7e-4);  // of more ranks
  EXPECT_TRUE(peaks.linearises_ahead && !peaks.shares_parameters && peaks.wants_input_gradient);
  const mgrit::scaling::BatchShape shape = ShapeFor(peaks, PublishedSetting(), 64, 2);
  EXPECT_TRUE(shape.linearises_ahead && !shape.shares_parameters && shape.wants_input_gradient);
  ASSERT_EQ(peaks.biases.size(), 1u);
  EXPECT_EQ(peaks.biases[0].bias, 0.125);
  // 2 ms of head, 8 ms of 64 steps.
  EXPECT_DOUBLE_EQ(SerialSeconds(peaks, 256), 0.002 + 4 * 0.008);
  EXPECT_EQ(all[1].problem, "gru");
  EXPECT_TRUE(!all[1].linearises_ahead && all[1].shares_parameters && !all[1].has_messages);
}

// Costs and serial seconds that are a fixed part and one for each step, at two numbers of steps: 1 + 2 n per batch in steps,
// 3 + n / 4 in the head, 5 + 7 n serially.
TEST(Measurements, FixedPartOfABatchIsToldApart) {
  Measurements all = {.problem = "made up"};
  for (const std::int64_t steps : {16, 64}) {
    const auto n = static_cast<double>(steps);
    mgrit::scaling::Costs costs;
    costs.work[WorkKind::kFineStep] = costs.sum = (1 + 2 * n) / n;
    costs.head = 3 + n / 4;
    all.costs.push_back({.setting = "A", .steps = steps, .costs = costs});
    all.serial.push_back({.setting = "serial", .steps = steps, .seconds = 5 + 7 * n});
  }
  for (const double n : {8.0, 16.0, 32.0, 64.0, 1024.0}) {
    const auto steps = static_cast<std::int64_t>(n);
    for (const std::string setting : {"A", "never measured"}) {
      const mgrit::scaling::Costs costs = CostsFor(all, setting, steps);
      EXPECT_NEAR(costs.work[WorkKind::kFineStep] * n, 1 + 2 * n, 1e-9);
      EXPECT_NEAR(costs.sum * n, 1 + 2 * n, 1e-9);
      EXPECT_NEAR(costs.head, 3 + n / 4, 1e-9);
    }
    EXPECT_NEAR(SerialSeconds(all, steps), 5 + 7 * n, 1e-9);
  }
  EXPECT_EQ(Calibration(all, {16, 64}).costs.size(), 2u);
  const Measurements longest = Calibration(all, {64});
  EXPECT_EQ(longest.costs.size(), 1u);
  EXPECT_NEAR(SerialSeconds(longest, 32), 19 + (5 + 7 * 64 - 19) / 2.0, 1e-9);  // 19: its head
}

// Three runs with the same flags; the second was disturbed least.
TEST(Measurements, QuickestRunCounts) {
  std::string log;
  for (const auto& [median, mean] : {std::pair(0.03, 0.04), std::pair(0.02, 0.024), std::pair(0.05, 0.05)}) {
    log +=
        absl::StrFormat("serial_step ranks=1 steps=64 problem=peaks setting=serial median=%g\n", median / 4);
    log += absl::StrFormat(
        "lp_step ranks=1 steps=64 problem=peaks setting=A median=%g processor=%g forward=%g head=%g "
        "backward=%g\n"
        "lp_costs ranks=1 steps=64 problem=peaks setting=A fine_step=%g\n",
        median, median + 1, mean / 4, mean / 4, mean / 2, mean / 100);
  }
  const Measurements all = (*ReadMeasurements(WriteLog("quickest", log)))[0];
  EXPECT_NEAR(CostsFor(all, "A", 64).work[WorkKind::kFineStep], 0.024 / 100, 1e-12);
  EXPECT_NEAR(CostsFor(all, "A", 32).work[WorkKind::kFineStep], 0.024 / 100, 1e-12);
  EXPECT_EQ(SerialSeconds(all, 64), 0.005);
  const RunSeconds seconds = SecondsOf(all.parallel, all.parallel[0]);
  EXPECT_EQ(seconds.quickest, 0.02);
  EXPECT_EQ(seconds.median, 0.03);
  EXPECT_EQ(seconds.processor, 1.02);
}

TEST(Measurements, BadLogsAreNamed) {
  const auto message = [](const std::string& text) {
    return std::string(ReadMeasurements(WriteLog("bad", text)).status().message());
  };
  EXPECT_THAT(message("lp_step ranks=1 steps=8 problem=mnist median=1\n"), HasSubstr("mnist"));
  EXPECT_THAT(message("\nlp_step ranks=one\n"), HasSubstr(":2: expected a number in ranks=one"));
  EXPECT_FALSE(ReadMeasurements("/nonexistent").ok());
}

// A step takes a second everywhere, so that times are numbers of evaluations: 64 layers on 16 ranks.
TEST(FastestWay, IsTheQuickestOfThoseThatAreExactEnough) {
  const std::string one = TextOf(MakeLayerParallelOptions(2, 4, 1, 1)),
                    two = TextOf(MakeLayerParallelOptions(2, 4, 2, 1)),
                    slow = TextOf(MakeLayerParallelOptions(2, 2, 1, 1));
  Measurements all = {.problem = "made up"};
  mgrit::scaling::Costs costs;
  for (std::size_t kind = 0; kind < mgrit::kWorkKinds; ++kind) costs.work.values[kind] = 1;
  costs.work[WorkKind::kLinearisation] = costs.work[WorkKind::kGradient] = 0;
  all.costs = {{.setting = "any", .steps = 64, .costs = costs}};
  all.serial = {{.setting = "serial", .steps = 64, .seconds = 128}};
  all.biases = {{one, 64, 0.5}, {two, 64, 0.05}, {slow, 64, 0.001}};
  // One iteration: 16 coarse steps from rank to rank and 3 fine ones behind, both ways.
  const Way any = *FastestWay(all, all, 64, 16, 1);
  EXPECT_EQ(any.name, "2x4 1+1");
  EXPECT_NEAR(any.seconds, 2 * (16 + 3), 1e-9);
  EXPECT_NEAR(any.speedup(), 128.0 / 38, 1e-9);
  EXPECT_EQ(FastestWay(all, all, 64, 16, 0.1)->name, "2x4 2+1");
  EXPECT_EQ(FastestWay(all, all, 64, 16, 0.01)->name, "2x2 1+1");
  EXPECT_EQ(FastestWay(all, all, 64, 16, 1e-9)->name, "serial");
  EXPECT_EQ(FastestWay(all, all, 64, 1, 1)->name, "serial");
}

}  // namespace
}  // namespace plait::benchmarks
