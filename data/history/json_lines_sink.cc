#include "data/history/json_lines_sink.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/history/number_text.h"

namespace plait::data {
namespace {

void AppendJson(double value, std::string& out) {
  if (std::isfinite(value)) {
    AppendNumber(value, out);
  } else {
    out += std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<JsonLinesSink>> JsonLinesSink::Create(const std::string& path,
                                                                     const SinkOptions& options) {
  PLAIT_ASSIGN_OR_RETURN(AppendFile file, AppendFile::Create(path, options.move_old_aside));
  return std::unique_ptr<JsonLinesSink>(new JsonLinesSink(std::move(file)));
}

// Names need no escapes: CheckMetricName has seen them.
absl::Status JsonLinesSink::Add(const Draw& draw) {
  line_.clear();
  absl::StrAppend(&line_, "{\"draw\":", draw.draw);
  for (const Scalar& scalar : draw.scalars) {
    absl::StrAppend(&line_, ",\"", scalar.name, "\":");
    AppendJson(scalar.value, line_);
  }
  for (const Vector& vector : draw.vectors) {
    absl::StrAppend(&line_, ",\"", vector.name, "\":[");
    for (std::size_t i = 0; i < vector.values.size(); ++i) {
      if (i > 0) line_.push_back(',');
      AppendJson(vector.values[i], line_);
    }
    line_.push_back(']');
  }
  line_ += "}\n";
  return file_.Write(line_);
}

}  // namespace plait::data
