#include "tools/moe_bench/placement_table.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "parallel/moe/load.h"
#include "parallel/moe/planner.h"

namespace plait::moe_bench {
namespace {

// Bandwidths of PCIe and NVLink within a node, and half of an A100's peak in half precision.
constexpr double kLinks[] = {20e9, 250e9};
constexpr double kFlops = 150e12;

moe::Census CensusOf(const moe::WorkloadOptions& options, std::int64_t samples) {
  moe::Census census(options.ranks, options.experts);
  for (int rank = 0; rank < options.ranks; ++rank) {
    for (const std::int64_t expert : moe::ExpertIds(options, 0, samples * rank, samples)) {
      ++census.at(rank, static_cast<int>(expert));
    }
  }
  return census;
}

struct Row {
  std::string name;
  moe::PlannerOptions planner;
};

std::vector<Row> Rows(const Config& config, const moe::MoeCostModel& cost) {
  std::vector<Row> rows = {{"home", {}}};
  std::vector<double> links = {config.link_bytes_per_second};
  if (config.link_bytes_per_second == 0) links.assign(std::begin(kLinks), std::end(kLinks));
  for (const double link : links) {
    moe::PlannerOptions shadow = {
        .policy = moe::PlacementPolicy::kShadow, .replica_slots = config.replica_slots, .cost = cost};
    shadow.cost.link_bytes_per_second = link;
    rows.push_back({absl::StrFormat("shadow %g GB/s", link * 1e-9), shadow});
  }
  for (const auto policy : {moe::PlacementPolicy::kEplb, moe::PlacementPolicy::kBalanced}) {
    rows.push_back({moe::Name(policy), {.policy = policy, .replica_slots = config.replica_slots}});
  }
  return rows;
}

}  // namespace

absl::StatusOr<std::string> PlacementTable(const Config& config, int ranks) {
  const moe::MoeCostModel cost = {
      .latency_seconds = config.latency_seconds,
      .rank_flops_per_second = config.rank_flops_per_second > 0 ? config.rank_flops_per_second : kFlops,
      .width = config.model_dim,
      .hidden = config.hidden_size,
      .gated = config.gated,
      .element_bytes = static_cast<int>(c10::elementSize(config.type))};
  std::string text = absl::StrFormat(
      "%d ranks, %d tokens each for %d experts, %d replica slots on a rank, experts of %d x %d in %s; shadow "
      "assumes %g "
      "TFLOP/s of a rank\nexchanged: dispatch, combine and their gradients, a row once per expert; replicas: "
      "weights "
      "in, gradients out, without biases\n\n",
      ranks, config.samples, config.top, config.replica_slots, config.model_dim, config.hidden_size,
      config.dtype, cost.rank_flops_per_second * 1e-12);
  absl::StrAppend(
      &text,
      "Zipf  experts  placement        overload factor  remote share  replicas  replica MB  exchanged MB\n");
  for (const double exponent : {0.6, 1.0, 1.4}) {
    for (const int experts : {32, 256}) {
      const moe::WorkloadOptions workload = {.workload = moe::Workload::kSpread,
                                             .seed = config.seed,
                                             .experts = experts,
                                             .ranks = ranks,
                                             .k = config.top,
                                             .zipf_exponent = exponent};
      PLAIT_RETURN_IF_ERROR(base::Prefixed(moe::Validate(workload), "--placement-table"));
      const moe::Census census = CensusOf(workload, config.samples);
      for (const Row& row : Rows(config, cost)) {
        const moe::LoadReport load = moe::ReportLoad(census, moe::PlanPlacement(row.planner, census));
        const auto rows = static_cast<double>(load.remote_rows);
        absl::StrAppendFormat(&text, "%4.1f  %7d  %-15s  %15.3f  %12.3f  %8d  %10.1f  %12.1f\n", exponent,
                              experts, row.name, load.overload_factor, rows / static_cast<double>(load.rows),
                              load.replicas,
                              static_cast<double>(moe::ReplicaBytes(
                                  load.replicas, static_cast<std::int64_t>(cost.replica_bytes()))) *
                                  1e-6,
                              4 * rows * cost.row_bytes() * 1e-6);
      }
    }
  }
  return text;
}

}  // namespace plait::moe_bench
