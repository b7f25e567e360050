#include "tests/benchmarks/measurements.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "tests/benchmarks/spread.h"

namespace plait::benchmarks {
namespace {

using mgrit::scaling::Costs;
using Entries = std::map<std::string, std::string>;

// 0 where the key is missing.
absl::StatusOr<double> Number(const Entries& entries, const std::string& key) {
  const auto found = entries.find(key);
  double value = 0;
  if (found != entries.end() && !absl::SimpleAtod(found->second, &value)) {
    return absl::InvalidArgumentError(absl::StrCat("expected a number in ", key, "=", found->second));
  }
  return value;
}

absl::Status AddStep(const Entries& entries, std::vector<MeasuredStep>& steps) {
  MeasuredStep step;
  step.setting = entries.count("setting") > 0 ? entries.at("setting") : "";
  PLAIT_ASSIGN_OR_RETURN(const double ranks, Number(entries, "ranks"));
  PLAIT_ASSIGN_OR_RETURN(const double count, Number(entries, "steps"));
  PLAIT_ASSIGN_OR_RETURN(step.seconds, Number(entries, "median"));
  step.ranks = static_cast<int>(ranks);
  step.steps = static_cast<std::int64_t>(count);
  steps.push_back(step);
  return absl::OkStatus();
}

absl::Status AddCosts(const Entries& entries, Measurements& all) {
  PLAIT_ASSIGN_OR_RETURN(const double ranks, Number(entries, "ranks"));
  if (ranks != 1) return absl::OkStatus();
  MeasuredCosts measured;
  measured.setting = entries.count("setting") > 0 ? entries.at("setting") : "";
  PLAIT_ASSIGN_OR_RETURN(const double steps, Number(entries, "steps"));
  measured.steps = static_cast<std::int64_t>(steps);
  Costs& costs = measured.costs;
  for (std::size_t kind = 0; kind < mgrit::kWorkKinds; ++kind) {
    PLAIT_ASSIGN_OR_RETURN(costs.work.values[kind], Number(entries, mgrit::kWorkNames[kind]));
  }
  costs.work = mgrit::scaling::MeasuredOrLike(costs.work);
  PLAIT_ASSIGN_OR_RETURN(costs.input, Number(entries, "inputs"));
  PLAIT_ASSIGN_OR_RETURN(costs.head, Number(entries, "head"));
  PLAIT_ASSIGN_OR_RETURN(costs.solver, Number(entries, "solver"));
  PLAIT_ASSIGN_OR_RETURN(costs.sum, Number(entries, "sum"));
  PLAIT_ASSIGN_OR_RETURN(costs.state_bytes, Number(entries, "state_bytes"));
  PLAIT_ASSIGN_OR_RETURN(costs.gradient_bytes, Number(entries, "gradient_bytes"));
  PLAIT_ASSIGN_OR_RETURN(all.batch, Number(entries, "batch"));
  PLAIT_ASSIGN_OR_RETURN(all.hidden, Number(entries, "hidden"));
  all.costs.push_back(measured);
  return absl::OkStatus();
}

// Figures of messages from the runs on the fewest ranks, as more ranks than cores measure something else; the
// hand-over from those on the most.
struct MessageRuns {
  double fewest_ranks = 1e9, most_ranks = 0;
  std::vector<double> latency, byte, contention, hand_over;
};

absl::Status AddMessages(const Entries& entries, MessageRuns& runs) {
  PLAIT_ASSIGN_OR_RETURN(const double ranks, Number(entries, "ranks"));
  PLAIT_ASSIGN_OR_RETURN(const double latency, Number(entries, "latency"));
  PLAIT_ASSIGN_OR_RETURN(const double byte, Number(entries, "per_byte"));
  PLAIT_ASSIGN_OR_RETURN(const double contention, Number(entries, "contention"));
  PLAIT_ASSIGN_OR_RETURN(const double hand_over, Number(entries, "hand_over"));
  if (ranks < runs.fewest_ranks) {
    runs.fewest_ranks = ranks;
    runs.latency = runs.byte = runs.contention = {};
  }
  if (ranks == runs.fewest_ranks) {
    runs.latency.push_back(latency);
    runs.byte.push_back(byte);
    runs.contention.push_back(contention);
  }
  if (ranks > runs.most_ranks) runs.hand_over.clear();
  runs.most_ranks = std::max(runs.most_ranks, ranks);
  if (ranks == runs.most_ranks) runs.hand_over.push_back(hand_over);
  return absl::OkStatus();
}

absl::Status AddLine(const std::string& line, MessageRuns& messages, Measurements& all) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (words.empty()) return absl::OkStatus();
  Entries entries;
  for (const std::string& word : words) {
    const std::pair<std::string, std::string> entry = absl::StrSplit(word, absl::MaxSplits('=', 1));
    entries.insert(entry);
  }
  if (words[0] == "serial_step") return AddStep(entries, all.serial);
  if (words[0] == "lp_step") return AddStep(entries, all.parallel);
  if (words[0] == "lp_costs") return AddCosts(entries, all);
  if (words[0] == "messages") return AddMessages(entries, messages);
  return absl::OkStatus();
}

double MedianOf(const std::vector<const MeasuredCosts*>& runs,
                const std::function<double(const Costs&)>& figure) {
  std::vector<double> values;
  for (const MeasuredCosts* run : runs) values.push_back(figure(run->costs));
  return SpreadOf(values).median;
}

}  // namespace

absl::StatusOr<Measurements> ReadMeasurements(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  Measurements all;
  MessageRuns messages;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    PLAIT_RETURN_IF_ERROR(base::Prefixed(AddLine(line, messages, all), absl::StrCat(path, ":", ++number)));
  }
  if (all.costs.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a line lp_costs ranks=1 of layer_parallel_step, found none"));
  }
  all.has_messages = !messages.latency.empty();
  if (!all.has_messages) return all;
  all.latency = SpreadOf(messages.latency).median;
  all.byte = SpreadOf(messages.byte).median;
  all.contention = SpreadOf(messages.contention).median;
  all.hand_over = SpreadOf(messages.hand_over).median;
  return all;
}

Costs CostsFor(const Measurements& measurements, const std::string& setting, std::int64_t steps) {
  std::vector<const MeasuredCosts*> runs;
  const auto take = [&](const std::function<bool(const MeasuredCosts&)>& fits) {
    for (const MeasuredCosts& run : measurements.costs) {
      if (runs.empty() || runs.back()->setting == run.setting) {
        if (fits(run)) runs.push_back(&run);
      }
    }
  };
  take([&](const MeasuredCosts& run) { return run.setting == setting && run.steps == steps; });
  if (runs.empty()) take([&](const MeasuredCosts& run) { return run.setting == setting; });
  if (runs.empty()) take([](const MeasuredCosts&) { return true; });
  Costs costs = runs[0]->costs;
  for (std::size_t kind = 0; kind < mgrit::kWorkKinds; ++kind) {
    costs.work.values[kind] = MedianOf(runs, [&](const Costs& c) { return c.work.values[kind]; });
  }
  costs.input = MedianOf(runs, [](const Costs& c) { return c.input; });
  costs.head = MedianOf(runs, [](const Costs& c) { return c.head; });
  costs.solver = MedianOf(runs, [](const Costs& c) { return c.solver; });
  costs.sum = MedianOf(runs, [](const Costs& c) { return c.sum; });
  costs.latency = measurements.latency;
  costs.byte = measurements.byte;
  return costs;
}

}  // namespace plait::benchmarks
