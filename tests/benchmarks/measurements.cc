#include "tests/benchmarks/measurements.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "tests/benchmarks/spread.h"

namespace plait::benchmarks {
namespace {

using mgrit::scaling::Costs;
using Entries = std::map<std::string, std::string>;

// `missing` where the key is missing.
absl::StatusOr<double> Number(const Entries& entries, const std::string& key, double missing = 0) {
  const auto found = entries.find(key);
  double value = missing;
  if (found != entries.end() && !absl::SimpleAtod(found->second, &value)) {
    return absl::InvalidArgumentError(absl::StrCat("expected a number in ", key, "=", found->second));
  }
  return value;
}

std::string Word(const Entries& entries, const std::string& key, const std::string& missing = "") {
  const auto found = entries.find(key);
  return found == entries.end() ? missing : found->second;
}

absl::StatusOr<std::int64_t> Whole(const Entries& entries, const std::string& key) {
  PLAIT_ASSIGN_OR_RETURN(const double value, Number(entries, key));
  return static_cast<std::int64_t>(value);
}

absl::Status AddStep(const Entries& entries, std::vector<MeasuredStep>& steps) {
  MeasuredStep step;
  step.setting = Word(entries, "setting");
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t ranks, Whole(entries, "ranks"));
  PLAIT_ASSIGN_OR_RETURN(step.steps, Whole(entries, "steps"));
  PLAIT_ASSIGN_OR_RETURN(step.seconds, Number(entries, "median"));
  for (const std::string part : {"forward", "head", "backward"}) {
    PLAIT_ASSIGN_OR_RETURN(const double seconds, Number(entries, part));
    step.mean += seconds;
  }
  PLAIT_ASSIGN_OR_RETURN(step.processor, Number(entries, "processor"));
  step.ranks = static_cast<int>(ranks);
  steps.push_back(step);
  return absl::OkStatus();
}

absl::Status AddKind(const Entries& entries, Measurements& all) {
  PLAIT_ASSIGN_OR_RETURN(const double ahead, Number(entries, "ahead", 0));
  PLAIT_ASSIGN_OR_RETURN(const double shared, Number(entries, "shared", 1));
  PLAIT_ASSIGN_OR_RETURN(const double input_gradient, Number(entries, "input_gradient", 0));
  all.linearises_ahead = ahead != 0;
  all.shares_parameters = shared != 0;
  all.wants_input_gradient = input_gradient != 0;
  return absl::OkStatus();
}

absl::Status AddCosts(const Entries& entries, Measurements& all) {
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t ranks, Whole(entries, "ranks"));
  if (ranks != 1) return absl::OkStatus();
  MeasuredCosts measured;
  measured.setting = Word(entries, "setting");
  PLAIT_ASSIGN_OR_RETURN(measured.steps, Whole(entries, "steps"));
  if (!all.parallel.empty()) measured.seconds = all.parallel.back().mean;  // the line before
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
  all.costs.push_back(measured);
  return AddKind(entries, all);
}

absl::Status AddBias(const Entries& entries, std::vector<MeasuredBias>& biases) {
  MeasuredBias measured = {.setting = Word(entries, "setting")};
  PLAIT_ASSIGN_OR_RETURN(measured.steps, Whole(entries, "steps"));
  PLAIT_ASSIGN_OR_RETURN(measured.bias, Number(entries, "bias"));
  biases.push_back(measured);
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

void SetMessages(const MessageRuns& runs, Measurements& all) {
  all.has_messages = !runs.latency.empty();
  if (!all.has_messages) return;
  all.latency = SpreadOf(runs.latency).median;
  all.byte = SpreadOf(runs.byte).median;
  all.contention = SpreadOf(runs.contention).median;
  all.hand_over = SpreadOf(runs.hand_over).median;
}

struct Log {
  std::vector<Measurements> problems;
  std::vector<MessageRuns> messages;  // by problem
};

std::size_t ProblemOf(const Entries& entries, Log& log) {
  const std::string name = Word(entries, "problem", "gru");
  const auto is_it = [&](const Measurements& one) { return one.problem == name; };
  const auto found = std::find_if(log.problems.begin(), log.problems.end(), is_it);
  if (found != log.problems.end()) return static_cast<std::size_t>(found - log.problems.begin());
  log.problems.emplace_back();
  log.problems.back().problem = name;
  log.messages.emplace_back();
  return log.problems.size() - 1;
}

absl::Status AddLine(const std::string& line, Log& log) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (words.empty()) return absl::OkStatus();
  const std::string& kind = words[0];
  if (kind != "serial_step" && kind != "lp_step" && kind != "lp_costs" && kind != "lp_bias" &&
      kind != "messages")
    return absl::OkStatus();
  Entries entries;
  for (const std::string& word : words) {
    const std::pair<std::string, std::string> entry = absl::StrSplit(word, absl::MaxSplits('=', 1));
    entries.insert(entry);
  }
  const std::size_t problem = ProblemOf(entries, log);
  Measurements& all = log.problems[problem];
  if (kind == "lp_bias") return AddBias(entries, all.biases);
  if (kind == "messages") return AddMessages(entries, log.messages[problem]);
  PLAIT_ASSIGN_OR_RETURN(all.batch, Number(entries, "batch"));
  all.data = Word(entries, "data");
  if (kind == "lp_costs") return AddCosts(entries, all);
  return AddStep(entries, kind == "serial_step" ? all.serial : all.parallel);
}

// Quickest runs with the same setting, by their steps.
using RunsBySteps = std::map<std::int64_t, const MeasuredCosts*>;

RunsBySteps RunsOf(const Measurements& measurements, const std::string& setting) {
  RunsBySteps runs;
  for (const MeasuredCosts& run : measurements.costs) {
    if (run.setting != setting) continue;
    const MeasuredCosts*& quickest = runs[run.steps];
    if (quickest == nullptr || run.seconds < quickest->seconds) quickest = &run;
  }
  return runs;
}

// The line through the values at the least and the greatest x; through one value a constant.
double LineAt(double x, std::pair<double, double> least, std::pair<double, double> greatest) {
  const double wide = greatest.first - least.first;
  const double slope = wide == 0 ? 0 : (greatest.second - least.second) / wide;
  return least.second + slope * (x - least.first);
}

Costs CostsAt(const RunsBySteps& runs, std::int64_t steps) {
  const auto measured = runs.find(steps);
  if (measured != runs.end()) return measured->second->costs;
  const auto& [fewest, shortest] = *runs.begin();
  const auto& [most, longest] = *runs.rbegin();
  const auto at = [&](double in_shortest, double in_longest, bool by_batch) {
    // A part of the batch that is the same for all numbers of steps is in a cost per step as 1 / steps.
    const auto x = [&](std::int64_t count) {
      return by_batch ? static_cast<double>(count) : 1 / static_cast<double>(count);
    };
    return std::max(0.0, LineAt(x(steps), {x(fewest), in_shortest}, {x(most), in_longest}));
  };
  const Costs &a = shortest->costs, &b = longest->costs;
  Costs costs = a;
  for (std::size_t kind = 0; kind < mgrit::kWorkKinds; ++kind) {
    costs.work.values[kind] = at(a.work.values[kind], b.work.values[kind], false);
  }
  costs.input = at(a.input, b.input, false);
  costs.head = at(a.head, b.head, true);
  costs.solver = at(a.solver, b.solver, false);
  costs.sum = at(a.sum, b.sum, false);
  return costs;
}

}  // namespace

absl::StatusOr<std::vector<Measurements>> ReadMeasurements(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  Log log;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    PLAIT_RETURN_IF_ERROR(base::Prefixed(AddLine(line, log), absl::StrCat(path, ":", ++number)));
  }
  for (std::size_t i = 0; i < log.problems.size(); ++i) {
    if (log.problems[i].costs.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": expected a line lp_costs ranks=1 of ",
                                                     log.problems[i].problem, ", found none"));
    }
    SetMessages(log.messages[i], log.problems[i]);
  }
  return log.problems;
}

RunSeconds SecondsOf(const std::vector<MeasuredStep>& all, const MeasuredStep& like) {
  std::vector<double> seconds;
  const MeasuredStep* quickest = nullptr;
  for (const MeasuredStep& one : all) {
    if (one.setting != like.setting || one.ranks != like.ranks || one.steps != like.steps) continue;
    seconds.push_back(one.seconds);
    if (quickest == nullptr || one.seconds < quickest->seconds) quickest = &one;
  }
  return {
      .quickest = quickest->seconds, .median = SpreadOf(seconds).median, .processor = quickest->processor};
}

Measurements Calibration(Measurements all, const std::vector<std::int64_t>& steps) {
  const auto is_other = [&](const auto& run) {
    return std::find(steps.begin(), steps.end(), run.steps) == steps.end();
  };
  std::erase_if(all.costs, is_other);
  std::erase_if(all.serial, is_other);
  return all;
}

Costs CostsFor(const Measurements& measurements, const std::string& setting, std::int64_t steps) {
  RunsBySteps runs = RunsOf(measurements, setting);
  if (runs.empty()) runs = RunsOf(measurements, measurements.costs[0].setting);
  Costs costs = CostsAt(runs, steps);
  costs.latency = measurements.latency;
  costs.byte = measurements.byte;
  return costs;
}

mgrit::scaling::BatchShape ShapeFor(const Measurements& measurements, const Setting& setting,
                                    std::int64_t steps, int ranks) {
  mgrit::scaling::BatchShape shape = ShapeOf(setting, steps, ranks);
  shape.linearises_ahead = measurements.linearises_ahead;
  shape.shares_parameters = measurements.shares_parameters;
  shape.wants_input_gradient = measurements.wants_input_gradient;
  return shape;
}

double SerialSeconds(const Measurements& measurements, std::int64_t steps) {
  std::map<double, double> seconds;  // by steps
  for (const MeasuredStep& run : measurements.serial) {
    seconds[static_cast<double>(run.steps)] = SecondsOf(measurements.serial, run).quickest;
  }
  if (seconds.empty()) return 0;
  const auto wanted = static_cast<double>(steps);
  const auto measured = seconds.find(wanted);
  if (measured != seconds.end()) return measured->second;
  if (seconds.size() == 1) {
    const auto [run_steps, whole] = *seconds.begin();
    seconds[0] = std::min(CostsFor(measurements, "", static_cast<std::int64_t>(run_steps)).head, whole);
  }
  return LineAt(wanted, *seconds.begin(), *seconds.rbegin());
}

}  // namespace plait::benchmarks
