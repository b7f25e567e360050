#include "tools/report_parts/trace_reader.h"

#include <cerrno>
#include <fstream>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace plait::report::internal {
namespace {

// Takes events as they come: an event is an object in an array, at depth 1 of a bare array or at depth 2
// under "traceEvents"; its args are one level deeper.
class EventTaker : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit EventTaker(TraceContent& content) : content_(content) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override { return Number(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return Number(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t&) override { return Number(value); }
  bool binary(binary_t&) override { return true; }
  bool string(string_t& text) override;
  bool start_object(std::size_t) override;
  bool key(string_t& name) override {
    key_ = name;
    return true;
  }
  bool end_object() override;
  bool start_array(std::size_t) override {
    if (depth_ == 0 || (depth_ == 1 && key_ == "traceEvents")) events_depth_ = depth_ + 1;
    ++depth_;
    return true;
  }
  bool end_array() override {
    if (depth_-- == events_depth_) events_depth_ = -1;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    content_.cut_short = true;
    return false;
  }

 private:
  bool Number(double value);
  void TakeEvent();
  int NameId(const std::string& name);

  TraceContent& content_;
  std::unordered_map<std::string, int> name_ids_;
  int depth_ = 0;
  int events_depth_ = -1;  // of the array of events; -1 outside of it
  std::string key_;
  TraceSpan span_;
  std::string name_, phase_, name_of_track_;
};

bool EventTaker::start_object(std::size_t) {
  ++depth_;
  if (depth_ == events_depth_ + 1) {
    span_ = {};
    name_.clear();
    phase_.clear();
    name_of_track_.clear();
  }
  return true;
}

bool EventTaker::end_object() {
  if (depth_ == events_depth_ + 1) TakeEvent();
  --depth_;
  return true;
}

bool EventTaker::string(string_t& text) {
  if (events_depth_ < 0) return true;
  if (depth_ == events_depth_ + 1 && key_ == "name") name_ = text;
  if (depth_ == events_depth_ + 1 && key_ == "ph") phase_ = text;
  if (depth_ == events_depth_ + 2 && key_ == "name") name_of_track_ = text;
  return true;
}

bool EventTaker::Number(double value) {
  if (events_depth_ < 0) return true;
  const auto whole = static_cast<std::int64_t>(value);
  if (depth_ == events_depth_ + 1) {
    if (key_ == "pid") span_.process = whole;
    if (key_ == "tid") span_.thread = whole;
    if (key_ == "ts") span_.begin_microseconds = value;
    if (key_ == "dur") span_.duration_microseconds = value;
  } else if (depth_ == events_depth_ + 2) {
    if (key_ == "step") span_.step = whole;
    if (key_ == "bytes") span_.bytes = whole;
    if (key_ == "waited_ms") span_.waited_microseconds = 1e3 * value;
  }
  return true;
}

void EventTaker::TakeEvent() {
  if (phase_ == "X") {
    span_.name = NameId(name_);
    content_.spans.push_back(span_);
  } else if (phase_ == "M" && name_ == "process_name") {
    content_.process_names[span_.process] = name_of_track_;
  } else if (phase_ == "M" && name_ == "thread_name") {
    content_.thread_names[{span_.process, span_.thread}] = name_of_track_;
  }
}

int EventTaker::NameId(const std::string& name) {
  const auto [found, is_new] = name_ids_.emplace(name, content_.names.size());
  if (is_new) content_.names.push_back(name);
  return found->second;
}

}  // namespace

absl::StatusOr<TraceContent> ReadTrace(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be opened"));
  TraceContent content;
  EventTaker taker(content);
  nlohmann::json::sax_parse(file, &taker);
  if (!content.spans.empty()) return content;
  return absl::DataLossError(absl::StrCat(
      path, content.cut_short ? ": not a Chrome trace (no JSON)" : ": a Chrome trace without spans"));
}

}  // namespace plait::report::internal
