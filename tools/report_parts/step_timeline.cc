#include "tools/report_parts/step_timeline.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/json_depth.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace plait::report {
namespace {

using Json = nlohmann::json;

struct TraceSpan {
  int name = 0;  // into Trace::names
  std::int64_t process = 0, thread = 0;
  double begin_microseconds = 0, duration_microseconds = 0;
  std::int64_t step = -1, bytes = -1;  // of its args; -1: none
  double waited_microseconds = -1;     // likewise
};

struct TraceContent {
  std::vector<std::string> names;
  std::vector<TraceSpan> spans;  // complete ones (ph X), in the order of the file
  std::map<std::int64_t, std::string> process_names;
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> thread_names;
  bool cut_short = false;    // the file ends before its JSON does
  std::int64_t missing = 0;  // events that the ranks could not keep
};

double Number(const Json& object, const char* name, double otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

// Of Plait's own traces: "events_dropped_rank_0": "11".
std::int64_t EventsMissing(const std::string& key, const Json& value) {
  std::int64_t missing = 0;
  if (!absl::StartsWith(key, "events_dropped") || !value.is_string()) return 0;
  return absl::SimpleAtoi(value.get<std::string>(), &missing)
             ? std::clamp<std::int64_t>(missing, 0, 1LL << 40)
             : 0;
}

// Traces of other programs may have numbers out of range.
std::int64_t Whole(const Json& object, const char* name, double otherwise) {
  constexpr double kLargest = 9e18;
  const double number = Number(object, name, otherwise);
  return static_cast<std::int64_t>(number >= -kLargest && number <= kLargest ? number : otherwise);
}

std::string Text(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

class EventTaker {
 public:
  explicit EventTaker(TraceContent& content) : content_(content) {}

  void Take(const Json& event) {
    const auto found = event.find("args");
    const Json args = found != event.end() && found->is_object() ? *found : Json::object();
    const std::string phase = Text(event, "ph"), name = Text(event, "name");
    const auto process = Whole(event, "pid", 0);
    const auto thread = Whole(event, "tid", 0);
    if (phase == "X") {
      content_.spans.push_back({.name = NameId(name),
                                .process = process,
                                .thread = thread,
                                .begin_microseconds = Number(event, "ts", 0),
                                .duration_microseconds = Number(event, "dur", 0),
                                .step = Whole(args, "step", -1),
                                .bytes = Whole(args, "bytes", -1),
                                .waited_microseconds = 1e3 * Number(args, "waited_ms", -1e-3)});
    } else if (phase == "M" && name == "process_name") {
      content_.process_names[process] = Text(args, "name");
    } else if (phase == "M" && name == "thread_name") {
      content_.thread_names[{process, thread}] = Text(args, "name");
    }
  }

 private:
  int NameId(const std::string& name) {
    const auto [found, is_new] = name_ids_.emplace(name, content_.names.size());
    if (is_new) content_.names.push_back(name);
    return found->second;
  }

  TraceContent& content_;
  std::unordered_map<std::string, int> name_ids_;
};

absl::StatusOr<TraceContent> ReadTrace(const std::string& path) {
  // The path is the history's word: opening a pipe or a terminal would wait for somebody to write.
  std::error_code unknown;
  const auto status = std::filesystem::status(path, unknown);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return absl::DataLossError(absl::StrCat(path, ": not a regular file; expected a Chrome trace (JSON)"));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be opened"));
  TraceContent content;
  EventTaker taker(content);
  // Events are at depth 1 of a bare array, or at depth 2 under "traceEvents". None stays in memory as JSON.
  std::string key, inner_key;  // of the outermost object, and of one in it
  const auto take = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > base::kDeepestJson) return false;  // nested values recurse when they are copied
    if (event == Json::parse_event_t::key && depth == 1) key = parsed;
    if (event == Json::parse_event_t::key && depth == 2) inner_key = parsed;
    if (event == Json::parse_event_t::value && depth == 2 && key == "otherData") {
      content.missing += EventsMissing(inner_key, parsed);
    }
    const bool among_events = key.empty() ? depth == 1 : depth == 2 && key == "traceEvents";
    if (event != Json::parse_event_t::object_end || !among_events) return true;
    taker.Take(parsed);
    return false;
  };
  content.cut_short = Json::parse(file, take, /*allow_exceptions=*/false).is_discarded();
  if (!content.spans.empty()) return content;
  return absl::DataLossError(absl::StrCat(
      path, content.cut_short ? ": not a Chrome trace (no JSON)" : ": a Chrome trace without spans"));
}

constexpr double kSecond = 1e6;  // in microseconds
// Traces are written in steps of a nanosecond: the end of a span and the begin of the next may overlap by
// two.
constexpr double kRoundingSeconds = 2.5e-9;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Window {
  double begin = kInfinity, end = -kInfinity;  // microseconds
  std::set<std::int64_t> processes = {};

  double length() const { return end - begin; }
  void Take(const TraceSpan& span) {
    begin = std::min(begin, span.begin_microseconds);
    end = std::max(end, span.begin_microseconds + span.duration_microseconds);
    processes.insert(span.process);
  }
};

// The steps recorded by the largest number of ranks, by step number.
std::map<std::int64_t, Window> Steps(const TraceContent& trace) {
  std::map<std::int64_t, Window> steps;
  for (const TraceSpan& span : trace.spans) {
    if (span.step >= 0 && trace.names[span.name] == "step") steps[span.step].Take(span);
  }
  std::size_t most = 0;
  for (const auto& [number, window] : steps) most = std::max(most, window.processes.size());
  for (auto step = steps.begin(); step != steps.end();) {
    step = step->second.processes.size() < most ? steps.erase(step) : std::next(step);
  }
  return steps;
}

// The number of the step of median duration (the shorter of the two middle ones).
std::int64_t MedianOf(const std::map<std::int64_t, Window>& steps) {
  std::vector<std::pair<double, std::int64_t>> lengths;
  for (const auto& [number, window] : steps) lengths.emplace_back(window.length(), number);
  const auto middle = lengths.begin() + (lengths.size() - 1) / 2;
  std::nth_element(lengths.begin(), middle, lengths.end());
  return middle->second;
}

// Sets the nesting depth of each bar in its lane; bars that overlap without nesting count as nested, so that none is
// hidden, down to the deepest row, which takes all others.
void SetDepths(std::vector<Bar>& bars) {
  std::vector<double> ends;  // of the latest bar at each depth
  for (Bar& bar : bars) {
    std::size_t depth = 0;
    const double begin = bar.begin_seconds + kRoundingSeconds;
    while (depth < kDeepestBar && depth < ends.size() && ends[depth] > begin) ++depth;
    ends.resize(depth + 1);
    ends[depth] = bar.end_seconds;
    bar.depth = static_cast<int>(depth);
  }
}

// The part of the wait at the end of a span that lies in the window.
double WaitedSeconds(const TraceSpan& span, const Window& window) {
  if (span.waited_microseconds < 0) return -1;
  const double end = span.begin_microseconds + span.duration_microseconds;
  const double begin = end - std::min(span.waited_microseconds, span.duration_microseconds);
  return std::max(0.0, std::min(end, window.end) - std::max(begin, window.begin)) / kSecond;
}

std::vector<RankLanes> RanksIn(const TraceContent& trace, const Window& window) {
  std::map<std::int64_t, std::map<std::int64_t, Lane>> lanes;
  for (const TraceSpan& span : trace.spans) {
    const double end = span.begin_microseconds + span.duration_microseconds;
    if (end <= window.begin || span.begin_microseconds >= window.end) continue;
    if (trace.names[span.name] == "step") continue;
    lanes[span.process][span.thread].bars.push_back(
        {.name = trace.names[span.name],
         .begin_seconds = (std::max(span.begin_microseconds, window.begin) - window.begin) / kSecond,
         .end_seconds = (std::min(end, window.end) - window.begin) / kSecond,
         .bytes = span.bytes,
         .waited_seconds = WaitedSeconds(span, window)});
  }
  std::vector<RankLanes> ranks;
  for (auto& [process, threads] : lanes) {
    const auto name = trace.process_names.find(process);
    ranks.push_back(
        {process, name == trace.process_names.end() ? absl::StrCat("rank ", process) : name->second, {}});
    for (auto& [thread, lane] : threads) {
      const auto thread_name = trace.thread_names.find({process, thread});
      if (thread_name != trace.thread_names.end()) lane.name = thread_name->second;
      // Of two that begin together, the longer one encloses the other.
      std::stable_sort(lane.bars.begin(), lane.bars.end(), [](const Bar& a, const Bar& b) {
        return a.begin_seconds != b.begin_seconds ? a.begin_seconds < b.begin_seconds
                                                  : a.end_seconds > b.end_seconds;
      });
      SetDepths(lane.bars);
      ranks.back().lanes.push_back(std::move(lane));
    }
  }
  return ranks;
}

}  // namespace

absl::StatusOr<StepTimeline> MedianStep(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const TraceContent trace, ReadTrace(path));
  const std::map<std::int64_t, Window> steps = Steps(trace);
  StepTimeline timeline;
  timeline.steps = steps.size();
  Window window;
  if (steps.empty()) {
    for (const TraceSpan& span : trace.spans) window.Take(span);
  } else {
    timeline.step = MedianOf(steps);
    window = steps.at(timeline.step);
  }
  timeline.seconds = window.length() / kSecond;
  timeline.ranks = RanksIn(trace, window);
  if (trace.cut_short) timeline.note = "the trace ends in the middle; what is there is shown";
  if (trace.missing > 0) {
    absl::StrAppend(&timeline.note, timeline.note.empty() ? "" : "; ", "the trace is missing ", trace.missing,
                    " events, which may be of this step: times and overlap are of what is there");
  }
  return timeline;
}

}  // namespace plait::report
