#include "tools/moe_bench/step_report.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "comm/buffer.h"
#include "tools/report_parts/summary.h"

namespace plait::moe_bench {
namespace {

// A rank's numbers for one all-gather. Counts stay far below 2^53.
using Numbers = std::array<double, 16>;

Numbers NumbersOf(const StepFacts& f) {
  const auto count = [](std::int64_t value) { return static_cast<double>(value); };
  return {f.step_ms,
          f.forward_ms,
          f.backward_ms,
          f.attention_ms,
          f.lines.planner_ms,
          count(f.routed_rows),
          count(f.lines.trace.computed_rows),
          count(f.sent_rows),
          count(f.lines.trace.sent_rows),
          count(f.wire_bytes),
          f.lines.trace.forward.gate * 1e3,
          f.lines.trace.forward.census * 1e3,
          f.lines.trace.forward.places * 1e3,
          (f.lines.trace.forward.permutation + f.lines.trace.backward.permutation) * 1e3,
          f.lines.trace.forward.processor * 1e3,
          f.lines.trace.backward.processor * 1e3};
}

std::vector<Numbers> OfAllRanks(const comm::Communicator& world, const Numbers& mine) {
  std::vector<Numbers> all(world.size());
  world.AllGather(comm::ConstBufferOf(absl::MakeConstSpan(mine)),
                  comm::BufferOf(absl::MakeSpan(all.data()->data(), mine.size() * all.size())));
  return all;
}

double TotalOf(const std::vector<Numbers>& ranks, int number) {
  double sum = 0;
  for (const Numbers& rank : ranks) sum += rank[number];
  return sum;
}

std::int64_t SumOf(const std::vector<Numbers>& ranks, int number) {
  return static_cast<std::int64_t>(TotalOf(ranks, number));
}

absl::Status CheckCounts(int step, const std::vector<Numbers>& ranks, std::int64_t chosen, bool relays) {
  const std::int64_t routed = SumOf(ranks, 5), computed = SumOf(ranks, 6), expected = SumOf(ranks, 7),
                     sent = SumOf(ranks, 8);
  if (routed != chosen || computed != routed) {
    return absl::InternalError(absl::StrCat("step ", step, ": of ", chosen, " rows of all tokens ", routed,
                                            " were routed and ", computed, " computed"));
  }
  // Relaying ranks send rows of other nodes, too.
  if (!relays && sent != expected) {
    return absl::InternalError(
        absl::StrCat("step ", step, ": ", sent, " rows were sent, but ", expected, " have to travel"));
  }
  return absl::OkStatus();
}

double MaxOf(const std::vector<Numbers>& ranks, int number) {
  double most = 0;
  for (const Numbers& rank : ranks) most = std::max(most, rank[number]);
  return most;
}

double Megabytes(double bytes) { return bytes * 1e-6; }

}  // namespace

double StepNumbers::Teraflops(const Config& config, int ranks) const {
  if (config.mode == Mode::kDispatchOnly) return 0;
  return TeraflopsPerSecond(static_cast<double>(computed_rows) / ranks, config, step_ms);
}

absl::StatusOr<StepNumbers> CombineRanks(const Config& config, int step, const TrafficFacts& sizes,
                                         const StepFacts& facts, const BenchRanks& ranks) {
  const std::vector<Numbers> all = OfAllRanks(ranks.world, NumbersOf(facts));
  const std::int64_t chosen = std::int64_t{1} * ranks.world.size() * config.samples * config.top;
  absl::Status status = CheckCounts(step, all, chosen, ranks.experts.two_level());
  if (!status.ok()) return status;
  const Numbers& slowest = *std::max_element(all.begin(), all.end(),
                                             [](const Numbers& a, const Numbers& b) { return a[0] < b[0]; });
  TrafficFacts traffic = sizes;
  traffic.sent_rows = SumOf(all, 7);
  traffic.remote_rows = facts.load.remote_rows;
  traffic.replicas = facts.load.replicas;
  return StepNumbers{.step_ms = slowest[0],
                     .forward_ms = slowest[1],
                     .backward_ms = slowest[2],
                     .attention_ms = MaxOf(all, 3),
                     .planner_ms = MaxOf(all, 4),
                     .gate_ms = MaxOf(all, 10),
                     .census_ms = MaxOf(all, 11),
                     .places_ms = MaxOf(all, 12),
                     .permutation_ms = MaxOf(all, 13),
                     .critical_ms = MaxOf(all, 14) + MaxOf(all, 15),
                     .mean_rank_ms = (TotalOf(all, 14) + TotalOf(all, 15)) / static_cast<double>(all.size()),
                     .routed_rows = SumOf(all, 5),
                     .computed_rows = SumOf(all, 6),
                     .sent_rows = SumOf(all, 8),
                     .sent_bytes = SumOf(all, 9),
                     .traffic = TrafficOf(traffic),
                     .load = facts.load,
                     .stale_load = facts.stale_load,
                     .home_load = facts.home_load,
                     .predicted = facts.predicted,
                     .predicted_home = facts.predicted_home};
}

double StepReport::Mean(double (*of)(const StepNumbers&)) const {
  double sum = 0;
  for (const StepNumbers& step : steps_) sum += of(step);
  return sum / static_cast<double>(steps_.size());
}

std::string StepReport::LoadText() const {
  double worst = 0, stale = 0, worst_stale = 0;
  int has_stale = 0;
  for (const StepNumbers& step : steps_) {
    worst = std::max(worst, step.load.overload_factor);
    if (!step.stale_load.has_value()) continue;
    ++has_stale;
    stale += step.stale_load->overload_factor;
    worst_stale = std::max(worst_stale, step.stale_load->overload_factor);
  }
  std::string text = absl::StrFormat(
      "[Load] overload_factor = %.3f (worst step %.3f), max_vio = %.3f, dead_experts = %.1f, replicas = %.1f "
      "of %d slots\n",
      Mean([](const StepNumbers& s) { return s.load.overload_factor; }), worst,
      Mean([](const StepNumbers& s) { return s.load.max_violation; }),
      Mean([](const StepNumbers& s) { return double{1.0} * s.load.dead_experts; }),
      Mean([](const StepNumbers& s) { return double{1.0} * s.load.replicas; }),
      config_.UsableSlots(local_experts_, ranks_.world.size()) * ranks_.world.size());
  if (has_stale > 0 && config_.slots() > 0) {
    absl::StrAppendFormat(
        &text, "[Load] with the replicas of the step before: overload_factor = %.3f (worst step %.3f)\n",
        stale / has_stale, worst_stale);
  }
  return text + HomeText();
}

std::string StepReport::HomeText() const {
  if (config_.slots() == 0) return "";
  std::string text = absl::StrFormat("[Load] without replicas: overload_factor = %.3f",
                                     Mean([](const StepNumbers& s) { return s.home_load.overload_factor; }));
  if (config_.mode == Mode::kDispatchOnly) return text + "\n";
  const auto gain = [](double without, double with) { return with > 0 ? without / with : 1; };
  absl::StrAppendFormat(&text, "; predicted gain: experts = %.3f, forward + backward = %.3f\n",
                        gain(Mean([](const StepNumbers& s) { return s.predicted_home.compute; }),
                             Mean([](const StepNumbers& s) { return s.predicted.compute; })),
                        gain(Mean([](const StepNumbers& s) { return s.predicted_home.total(); }),
                             Mean([](const StepNumbers& s) { return s.predicted.total(); })));
  return text;
}

std::string StepReport::BytesText() const {
  double measured = 0, formula = 0;
  for (const StepNumbers& step : steps_) {
    measured += static_cast<double>(step.sent_bytes);
    formula += static_cast<double>(step.traffic.total());
  }
  std::string text = absl::StrFormat(
      "[Rows] per step: remote once per expert = %.1f, once per destination rank as sent = %.1f\n",
      Mean([](const StepNumbers& s) { return static_cast<double>(s.load.remote_rows); }),
      Mean([](const StepNumbers& s) { return static_cast<double>(s.sent_rows); }));
  absl::StrAppendFormat(
      &text,
      "[Bytes] per step: dispatch and combine = %.6f MB, census and places = %.6f MB, replicas = %.6f MB",
      Megabytes(Mean([](const StepNumbers& s) { return static_cast<double>(s.traffic.rows); })),
      Megabytes(Mean([](const StepNumbers& s) { return static_cast<double>(s.traffic.places); })),
      Megabytes(Mean([](const StepNumbers& s) { return static_cast<double>(s.traffic.replicas); })));
  if (ranks_.experts.two_level()) {
    absl::StrAppendFormat(&text, "; measured = %.6f MB, with rows that relays pass on\n",
                          Megabytes(measured / static_cast<double>(steps_.size())));
  } else if (formula > 0) {
    absl::StrAppendFormat(&text, "; measured/formula = %.3f\n", measured / formula);
  } else {
    absl::StrAppend(&text, "; nothing is sent\n");
  }
  return text;
}

double StepReport::Median(double StepNumbers::*of) const {
  std::vector<double> values;
  for (const StepNumbers& step : steps_) values.push_back(step.*of);
  return report::Quantile(values, 0.5);
}

std::string StepReport::OverheadText() const {
  const double planner = Median(&StepNumbers::planner_ms), places = Median(&StepNumbers::places_ms),
               permutation = Median(&StepNumbers::permutation_ms);
  return absl::StrFormat(
      "[Overhead] gate = %.6f ms, census = %.6f ms, planner = %.6f ms, places = %.6f ms, permutation = %.6f "
      "ms; "
      "planner, places and permutation = %.2f %% of the step\n",
      Median(&StepNumbers::gate_ms), Median(&StepNumbers::census_ms), planner, places, permutation,
      100 * (planner + places + permutation) / Median(&StepNumbers::step_ms));
}

std::string StepReport::TimeText() const {
  std::vector<double> times;
  for (const StepNumbers& step : steps_) times.push_back(step.step_ms);
  const double median = report::Quantile(times, 0.5), p90 = report::Quantile(times, 0.9);
  std::string text = absl::StrFormat(
      "[Time] slowest rank of %d steps: median = %.6f ms, p90 = %.6f ms, perf = %.4f tflops; attention "
      "(not in the step) = %.6f ms\n",
      static_cast<int>(steps_.size()), median, p90,
      TeraflopsPerSecond(config_.mode == Mode::kDispatchOnly ? 0 : Mean([](const StepNumbers& s) {
                                                                     return static_cast<double>(
                                                                         s.computed_rows);
                                                                   }) / ranks_.world.size(),
                         config_, median),
      Mean([](const StepNumbers& s) { return s.attention_ms; }));
  const double exchange = Mean([](const StepNumbers& s) { return s.predicted.exchange * 1e3; });
  const double measured = Mean([](const StepNumbers& s) { return s.forward_ms + s.backward_ms; });
  if (config_.mode == Mode::kDispatchOnly) {
    absl::StrAppendFormat(
        &text, "[Cost model] predicted exchange = %.6f ms, measured = %.6f ms, predicted/measured = %.3f\n",
        exchange, measured, exchange / measured);
    return text;
  }
  const double compute = Mean([](const StepNumbers&s) { return s.predicted.compute * 1e3; }),
               replicas = Mean([](const StepNumbers&s) { return s.predicted.replicas * 1e3; }),
               predicted = compute + exchange + replicas;
  absl::StrAppendFormat(
      &text,
      "[Cost model] predicted = %.6f ms (compute %.6f, exchange %.6f, replicas %.6f), forward + backward "
      "measured = %.6f ms, predicted/measured = %.3f\n",
      predicted, compute, exchange, replicas, measured, predicted / measured);
  return text;
}

std::string StepReport::CriticalPathText() const {
  if (config_.mode == Mode::kDispatchOnly) return "";
  const double measured = Median(&StepNumbers::critical_ms),
               predicted = Median(&StepNumbers::predicted_critical_ms);
  return absl::StrFormat(
      "[Critical path] processor time of experts%s, busiest rank forward and backward = %.6f ms, mean rank = "
      "%.6f ms; predicted = %.6f ms, predicted/measured = %.3f\n",
      at::get_num_threads() > 1 ? " (of each rank's first thread)" : "", measured,
      Median(&StepNumbers::mean_rank_ms), predicted, predicted / measured);
}

std::string StepReport::Text() const {
  const double routed = Mean([](const StepNumbers&s) { return static_cast<double>(s.routed_rows); }),
               computed = Mean([](const StepNumbers&s) { return static_cast<double>(s.computed_rows); });
  return absl::StrCat("\n",
                      SummaryLine(Mean([](const StepNumbers& s) { return s.step_ms; }),
                                  Mean([](const StepNumbers& s) { return s.forward_ms; }),
                                  Mean([](const StepNumbers& s) { return s.backward_ms; })),
                      "\n end end end\n",
                      absl::StrFormat("[Tokens] per step: rows routed = %.0f, %s = %.0f, lost = %.0f\n",
                                      routed, config_.mode == Mode::kDispatchOnly ? "arrived" : "computed",
                                      computed, routed - computed),
                      LoadText(), BytesText(), OverheadText(), TimeText(), CriticalPathText());
}

}  // namespace plait::moe_bench
