#include "tests/benchmarks/step_lines.h"

#include <cstdio>
#include <vector>

#include "absl/strings/str_format.h"
#include "mgrit/scaling/message_costs.h"
#include "tests/benchmarks/spread.h"

namespace plait::benchmarks {
namespace {

using mgrit::WorkKind;

// Means over ranks and batches; but for times of a batch, which are those of the slowest rank.
struct Measured {
  std::vector<double> totals, processor;
  BatchSeconds mean;
  mgrit::WorkSeconds seconds;                     // of all ranks and batches
  mgrit::PerWorkKind<double> counts;              // likewise
  double batches = 0, forward = 0, backward = 0;  // evaluations of a batch on all ranks
};

Measured Measure(TimedNetwork& network, const MeasureOptions& options) {
  const comm::Communicator& world = network.communicator();
  for (int i = 0; i < options.warmup; ++i) network.RunBatch();
  network.solver().ResetWorkTimes();
  Measured measured;
  std::vector<double> sums(7, 0.0);
  for (int i = 0; i < options.batches; ++i) {
    const BatchSeconds s = network.RunBatch();
    double slowest[] = {s.total(), s.processor};
    world.AllReduce(comm::BufferOf(absl::MakeSpan(slowest)), comm::ReduceOp::kMax);
    measured.totals.push_back(slowest[0]);
    measured.processor.push_back(slowest[1]);
    const double parts[] = {s.forward,        s.head, s.backward, s.forward_solve,
                            s.backward_solve, s.work, s.messages};
    for (std::size_t part = 0; part < sums.size(); ++part) {
      sums[part] += parts[part] / options.batches / world.size();
    }
  }
  world.AllReduce(comm::BufferOf(absl::MakeSpan(sums)));
  measured.mean = {sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6]};
  measured.batches = options.batches;
  const mgrit::WorkTimes times = network.solver().work_times();
  measured.seconds = times.seconds;
  for (std::size_t kind = 0; kind < mgrit::kWorkKinds; ++kind) {
    measured.counts.values[kind] = static_cast<double>(times.counts.values[kind]);
  }
  world.AllReduce(comm::BufferOf(absl::MakeSpan(measured.seconds.values.data(), mgrit::kWorkKinds)));
  world.AllReduce(comm::BufferOf(absl::MakeSpan(measured.counts.values.data(), mgrit::kWorkKinds)));
  for (const WorkKind kind : {WorkKind::kFineStep, WorkKind::kKeptFineStep, WorkKind::kCoarseStep}) {
    measured.forward += measured.counts[kind] / measured.batches;
  }
  for (const WorkKind kind : {WorkKind::kFineAdjoint, WorkKind::kKeptFineAdjoint, WorkKind::kCoarseAdjoint}) {
    measured.backward += measured.counts[kind] / measured.batches;
  }
  return measured;
}

std::string SpreadText(const Spread& spread) {
  return absl::StrFormat(" median=%.6f min=%.6f max=%.6f", spread.median, spread.min, spread.max);
}

// Seconds of each kind of work, by one piece of it; then what is not in them: by batch (head), by evaluation (solver), by
// step of the network on every rank (inputs) or by own step (sum). With parameters of their own, what a pass does for
// each leaf is work of own steps.
std::string CostsText(TimedNetwork& network, const Measured& measured) {
  std::string text;
  for (std::size_t kind = 0; kind < mgrit::kWorkKinds; ++kind) {
    const double count = measured.counts.values[kind];
    if (count == 0) continue;
    absl::StrAppendFormat(&text, " %s=%.9f", mgrit::kWorkNames[kind], measured.seconds.values[kind] / count);
  }
  mgrit::LayerParallel& solver = network.solver();
  const std::vector<at::Tensor> parameters = solver.Parameters();
  const std::int64_t shared = solver.shared_parameters();
  double gradient_bytes = 0;
  for (std::int64_t i = 0; i < shared; ++i) gradient_bytes += static_cast<double>(parameters[i].nbytes());
  absl::StrAppendFormat(&text, " state_bytes=%.0f gradient_bytes=%.0f ahead=%d shared=%d input_gradient=%d",
                        network.StateBytes(), gradient_bytes, solver.linearises_ahead(), shared > 0,
                        network.WantsInputGradient());
  const double ranks = network.communicator().size(), steps = static_cast<double>(solver.steps());
  const BatchSeconds& mean = measured.mean;
  const double gradients = measured.seconds[WorkKind::kGradient] / measured.batches / ranks;
  const double in_solver = mean.forward_solve + mean.backward_solve - (mean.work - gradients) - mean.messages;
  const double around_forward = mean.forward - mean.forward_solve;
  const double own_steps = measured.counts[WorkKind::kGradient] / measured.batches / ranks;
  const double around_backward = mean.backward - mean.backward_solve - gradients;
  absl::StrAppendFormat(&text, " inputs=%.9f head=%.9f solver=%.9f sum=%.9f",
                        shared > 0 ? around_forward / steps : 0.0, mean.head,
                        in_solver * ranks / (measured.forward + measured.backward),
                        (around_backward + (shared > 0 ? 0.0 : around_forward)) / own_steps);
  return text;
}

void MeasureSerial(TimedNetwork& network, const MeasureOptions& options) {
  std::vector<double> seconds;
  for (int i = 0; i < options.warmup; ++i) network.RunSerialBatch();
  for (int i = 0; i < options.batches; ++i) seconds.push_back(network.RunSerialBatch().total());
  std::printf("%s%s\n", LineHead("serial_step", network, "serial").c_str(),
              SpreadText(SpreadOf(seconds)).c_str());
}

void MeasureMessages(TimedNetwork& network) {
  const comm::Communicator& world = network.communicator();
  const mgrit::scaling::MessageCosts costs = mgrit::scaling::MeasureMessages(
      world, static_cast<std::int64_t>(network.StateBytes()), [&] { network.RunSerialBatch(); });
  if (world.rank() > 0) return;
  std::printf("messages ranks=%d %s latency=%.9f per_byte=%.15f contention=%.4f hand_over=%.9f\n",
              world.size(), network.Description().c_str(), costs.latency_seconds, costs.byte_seconds,
              costs.contention, costs.hand_over_seconds);
}

}  // namespace

std::string LineHead(const std::string& word, TimedNetwork& network, const std::string& setting) {
  return absl::StrFormat("%s ranks=%d steps=%d %s setting=%s", word, network.communicator().size(),
                         network.solver().steps(), network.Description(), setting);
}

void MeasureSteps(TimedNetwork& network, const std::string& setting, const MeasureOptions& options) {
  const int ranks = network.communicator().size();
  if (ranks == 1 && options.serial) MeasureSerial(network, options);
  const Measured measured = Measure(network, options);
  if (network.communicator().rank() == 0) {
    const BatchSeconds& mean = measured.mean;
    const double solves = mean.forward + mean.backward;
    std::printf(
        "%s%s processor=%.6f forward=%.6f head=%.6f backward=%.6f overhead=%.4f "
        "overhead_without_messages=%.4f messages=%.6f forward_evaluations=%.0f backward_evaluations=%.0f\n",
        LineHead("lp_step", network, setting).c_str(), SpreadText(SpreadOf(measured.totals)).c_str(),
        SpreadOf(measured.processor).median, mean.forward, mean.head, mean.backward, 1 - mean.work / solves,
        1 - (mean.work + mean.messages) / solves, mean.messages, measured.forward, measured.backward);
    std::printf("%s%s\n", LineHead("lp_costs", network, setting).c_str(),
                CostsText(network, measured).c_str());
    std::fflush(stdout);
  }
  if (ranks > 1 && options.messages) MeasureMessages(network);
}

}  // namespace plait::benchmarks
