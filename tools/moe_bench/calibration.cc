#include "tools/moe_bench/calibration.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/seed.h"
#include "comm/buffer.h"
#include "parallel/moe/pass_trace.h"

namespace plait::moe_bench {
namespace {

using Clock = double (*)();

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Collective. The minimum over a few runs of the slowest rank's time.
double SlowestRanksSeconds(const comm::Communicator& world, const std::function<void()>& work,
                           Clock now = WallSeconds) {
  constexpr int kRuns = 4;
  double least = 0;
  for (int run = 0; run < kRuns; ++run) {
    world.Barrier();
    const double begin = now();
    work();
    double seconds = now() - begin;
    world.AllReduce(comm::BufferOf(absl::MakeSpan(&seconds, 1)), comm::ReduceOp::kMax);
    // The first run allocates memory.
    if (run == 1 || (run > 1 && seconds < least)) least = seconds;
  }
  return least;
}

// Seconds of an all-to-all of `bytes` to each rank.
double ExchangeSeconds(const comm::Communicator& comm, std::int64_t bytes) {
  std::vector<std::uint8_t> out(bytes * comm.size(), 1), in(out.size());
  return SlowestRanksSeconds(comm, [&] {
    comm.AllToAll(comm::ConstBufferOf(absl::MakeConstSpan(out)), comm::BufferOf(absl::MakeSpan(in)));
  });
}

double ExpertSeconds(const Config& config, int local_experts, const BenchRanks& ranks, std::int64_t rows,
                     Clock now) {
  const at::NoGradGuard not_recorded;
  const moe::ExpertWeights weights =
      DrawExperts(config, local_experts, config.type, base::DeriveSeed(config.seed, "calibration"));
  std::vector<std::int64_t> offsets;
  for (int e = 0; e <= local_experts; ++e) offsets.push_back(rows * e / local_experts);
  const at::Tensor x = at::ones({rows, config.model_dim}, weights.in.options());
  const auto passes = [&] {
    moe::SavedExperts saved;
    const at::Tensor y = moe::ForwardExperts(MlpOf(config), weights, x, offsets, &saved);
    moe::BackwardExperts(MlpOf(config), weights, saved, offsets, at::ones_like(y), {});
  };
  return SlowestRanksSeconds(ranks.world, passes, now);
}

}  // namespace

Calibration Calibrate(const Config& config, int local_experts, const BenchRanks& ranks) {
  constexpr std::int64_t kLinkBytes = 1 << 20;
  constexpr double kFlops = 5e9;  // enough to time, or the rows of a step
  moe::MoeCostModel cost = {.link_bytes_per_second = config.link_bytes_per_second,
                            .latency_seconds = config.latency_seconds,
                            .rank_flops_per_second = config.rank_flops_per_second,
                            .width = config.model_dim,
                            .hidden = config.hidden_size,
                            .gated = config.gated,
                            .element_bytes = static_cast<int>(c10::elementSize(config.type))};
  const auto source = [](double given) { return given > 0 ? "given" : "measured"; };
  const int others = ranks.world.size() - 1;
  std::string text = "[Calibration]";
  if (others == 0) {
    // Nothing is sent; the model needs a positive number.
    cost.link_bytes_per_second = 1;
  } else {
    if (config.latency_seconds == 0) cost.latency_seconds = ExchangeSeconds(ranks.experts.comm(), 8) / others;
    if (config.link_bytes_per_second == 0) {
      cost.link_bytes_per_second =
          static_cast<double>(kLinkBytes * others) / ExchangeSeconds(ranks.experts.comm(), kLinkBytes);
    }
    absl::StrAppendFormat(&text, " link = %.3f GB/s per rank (%s), latency = %.1f us (%s),",
                          cost.link_bytes_per_second * 1e-9, source(config.link_bytes_per_second),
                          cost.latency_seconds * 1e6, source(config.latency_seconds));
  }
  const auto rows = std::min<std::int64_t>(
      config.samples * config.top,
      std::max<std::int64_t>(32 * local_experts, static_cast<std::int64_t>(kFlops / cost.row_flops())));
  const auto flops = [&](Clock now) {
    return static_cast<double>(rows) * cost.row_flops() /
           ExpertSeconds(config, local_experts, ranks, rows, now);
  };
  if (config.rank_flops_per_second == 0) cost.rank_flops_per_second = flops(WallSeconds);
  const double processor_flops = flops(moe::ProcessorSeconds);
  absl::StrAppendFormat(&text, " experts = %.2f GFLOP/s per rank (%s)\n", cost.rank_flops_per_second * 1e-9,
                        source(config.rank_flops_per_second));
  return {cost, processor_flops, text};
}

}  // namespace plait::moe_bench
