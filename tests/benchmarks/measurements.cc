#include "tests/benchmarks/measurements.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
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

double MedianOf(const std::vector<const MeasuredCosts*>& runs,
                const std::function<double(const Costs&)>& figure) {
  std::vector<double> values;
  for (const MeasuredCosts* run : runs) values.push_back(figure(run->costs));
  return SpreadOf(values).median;
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

double MedianSeconds(const std::vector<MeasuredStep>& all, const MeasuredStep& like) {
  std::vector<double> seconds;
  for (const MeasuredStep& one : all) {
    if (one.setting == like.setting && one.ranks == like.ranks && one.steps == like.steps)
      seconds.push_back(one.seconds);
  }
  return SpreadOf(seconds).median;
}

Measurements Calibration(Measurements all, std::int64_t steps) {
  std::erase_if(all.costs, [&](const MeasuredCosts& run) { return run.steps != steps; });
  std::erase_if(all.serial, [&](const MeasuredStep& run) { return run.steps != steps; });
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

mgrit::scaling::BatchShape ShapeFor(const Measurements& measurements, const Setting& setting,
                                    std::int64_t steps, int ranks) {
  mgrit::scaling::BatchShape shape = ShapeOf(setting, steps, ranks);
  shape.linearises_ahead = measurements.linearises_ahead;
  shape.shares_parameters = measurements.shares_parameters;
  shape.wants_input_gradient = measurements.wants_input_gradient;
  return shape;
}

double SerialSeconds(const Measurements& measurements, std::int64_t steps) {
  const MeasuredStep* nearest = nullptr;
  const auto distance = [&](const MeasuredStep& run) {
    return std::abs(std::log(static_cast<double>(run.steps) / static_cast<double>(steps)));
  };
  for (const MeasuredStep& run : measurements.serial) {
    if (nearest == nullptr || distance(run) < distance(*nearest)) nearest = &run;
  }
  if (nearest == nullptr) return 0;
  const double measured = MedianSeconds(measurements.serial, *nearest);
  const double head = std::min(CostsFor(measurements, "", nearest->steps).head, measured);
  return head + (measured - head) * static_cast<double>(steps) / static_cast<double>(nearest->steps);
}

}  // namespace plait::benchmarks
