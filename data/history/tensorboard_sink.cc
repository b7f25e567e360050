// TensorBoard event files.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/host_name.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/history/append_file.h"
#include "data/history/sinks.h"
#include "data/history/tensorboard_event.pb.h"
#include "data/history/tensorboard_record.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;

constexpr char kFileName[] = "events.out.tfevents.";
constexpr char kVersion[] = "brain.Event:2";
constexpr int kBuckets = 30;

double UnixSeconds() { return absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()); }

// TensorBoard stores scalars as float32: the only place where values are rounded.
float Narrowed(double value) { return static_cast<float>(value); }

bool HasEvents(const std::string& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (absl::StartsWith(entry.path().filename().string(), kFileName)) return true;
  }
  return false;
}

absl::Status MakeRoomIn(const std::string& folder, const TensorboardOptions& options) {
  if (HasEvents(folder) && options.resume_draws < 0) {
    if (!options.move_old_aside) {
      return absl::AlreadyExistsError(
          absl::StrCat(folder, ": holds an earlier run: choose another folder or remove its event files"));
    }
    PLAIT_RETURN_IF_ERROR(MoveAside(folder));
  }
  return MakeFolders(folder);
}

std::string EventFileName(const std::string& folder) {
  const std::string name = absl::StrCat(folder, "/", kFileName, absl::ToUnixSeconds(absl::Now()), ".",
                                        base::HostName(), ".", getpid());
  std::string free = name;
  for (int number = 1; fs::exists(free); ++number) free = absl::StrCat(name, ".", number);
  return free;
}

void FillHistogram(std::vector<double> values, tensorboard::Histogram& histogram) {
  std::sort(values.begin(), values.end());
  const double low = values.front(), high = values.back();
  histogram.set_min(low);
  histogram.set_max(high);
  histogram.set_num(static_cast<double>(values.size()));
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  histogram.set_sum(sum);
  histogram.set_sum_squares(squares);
  const int buckets = high > low ? kBuckets : 1;
  auto counted = values.begin();
  for (int i = 1; i <= buckets; ++i) {
    const double limit = i == buckets ? high : low + (high - low) * i / buckets;
    const auto end = std::upper_bound(counted, values.end(), limit);
    histogram.add_bucket_limit(limit);
    histogram.add_bucket(static_cast<double>(end - counted));
    counted = end;
  }
}

tensorboard::Value ValueOf(const std::string& text) {
  tensorboard::Value value;
  double number;
  if (absl::SimpleAtod(text, &number)) {
    value.set_number_value(number);
  } else if (text == "true" || text == "false" || text == "True" || text == "False") {
    value.set_bool_value(text == "true" || text == "True");
  } else {
    value.set_string_value(text);
  }
  return value;
}

// A plugin's data are the metadata of a summary value, whose tensor is empty.
void AddPluginValue(const std::string& tag, const tensorboard::HyperparameterData& data,
                    tensorboard::Summary& summary) {
  tensorboard::SummaryValue& value = *summary.add_value();
  value.set_tag(tag);
  value.mutable_tensor()->set_dtype(tensorboard::DT_FLOAT);
  value.mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(0);
  tensorboard::PluginData& plugin = *value.mutable_metadata()->mutable_plugin_data();
  plugin.set_plugin_name("hparams");
  plugin.set_content(data.SerializeAsString());
}

std::string MarkdownTable(const std::map<std::string, std::string>& attributes) {
  std::string table = "| attribute | value |\n| --- | --- |\n";
  for (const auto& [name, text] : attributes) {
    absl::StrAppend(&table, "| ", name, " | ", absl::StrReplaceAll(text, {{"|", "\\|"}, {"\n", " "}}),
                    " |\n");
  }
  return table;
}

class TensorboardSink : public HistorySink {
 public:
  TensorboardSink(AppendFile file, bool has_hyperparameters)
      : file_(std::move(file)), has_hyperparameters_(has_hyperparameters) {}
  absl::Status Begin(const TensorboardOptions& options);
  absl::Status Add(const Draw& draw) override;
  absl::Status Close(bool complete) override;
  void Discard() override { unlink(file_.path().c_str()); }

 private:
  absl::Status Write(const tensorboard::Summary& summary, std::int64_t step, double unix_seconds);
  absl::Status WriteText(const std::string& tag, const std::string& markdown);
  absl::Status WriteHyperparameters(const std::vector<std::pair<std::string, std::string>>& hyperparameters);

  AppendFile file_;
  bool has_hyperparameters_;
};

absl::Status TensorboardSink::Begin(const TensorboardOptions& options) {
  tensorboard::Event first;
  first.set_wall_time(UnixSeconds());
  first.set_file_version(kVersion);
  PLAIT_RETURN_IF_ERROR(file_.Write(TfRecord(first.SerializeAsString())));
  if (options.resume_draws >= 0) {
    tensorboard::Event start;
    start.set_wall_time(UnixSeconds());
    start.set_step(options.resume_draws);
    start.mutable_session_log()->set_status(tensorboard::SessionLog::START);
    PLAIT_RETURN_IF_ERROR(file_.Write(TfRecord(start.SerializeAsString())));
  }
  if (!options.attributes.empty()) PLAIT_RETURN_IF_ERROR(WriteText("run", MarkdownTable(options.attributes)));
  return WriteHyperparameters(options.hyperparameters);
}

absl::Status TensorboardSink::Write(const tensorboard::Summary& summary, std::int64_t step,
                                    double unix_seconds) {
  tensorboard::Event event;
  event.set_wall_time(unix_seconds);
  event.set_step(step);
  *event.mutable_summary() = summary;
  return file_.Write(TfRecord(event.SerializeAsString()));
}

absl::Status TensorboardSink::Add(const Draw& draw) {
  tensorboard::Summary summary;
  for (const Scalar& scalar : draw.scalars) {
    tensorboard::SummaryValue& value = *summary.add_value();
    value.set_tag(std::string(scalar.name));
    value.set_simple_value(Narrowed(scalar.value));
  }
  for (const Vector& vector : draw.vectors) {
    std::vector<double> finite;
    std::copy_if(vector.values.begin(), vector.values.end(), std::back_inserter(finite),
                 [](double value) { return std::isfinite(value); });
    if (finite.empty()) continue;
    tensorboard::SummaryValue& value = *summary.add_value();
    value.set_tag(std::string(vector.name));
    FillHistogram(std::move(finite), *value.mutable_histo());
  }
  return Write(summary, draw.draw, draw.unix_seconds);
}

absl::Status TensorboardSink::WriteText(const std::string& tag, const std::string& markdown) {
  tensorboard::Summary summary;
  tensorboard::SummaryValue& value = *summary.add_value();
  value.set_tag(tag);
  value.mutable_tensor()->set_dtype(tensorboard::DT_STRING);
  value.mutable_tensor()->mutable_tensor_shape();
  value.mutable_tensor()->add_string_val(markdown);
  value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  return Write(summary, 0, UnixSeconds());
}

absl::Status TensorboardSink::WriteHyperparameters(
    const std::vector<std::pair<std::string, std::string>>& hyperparameters) {
  if (hyperparameters.empty()) return absl::OkStatus();
  tensorboard::HyperparameterData data;
  tensorboard::SessionStart& start = *data.mutable_session_start_info();
  start.set_start_time_secs(UnixSeconds());
  for (const auto& [name, text] : hyperparameters) (*start.mutable_hparams())[name] = ValueOf(text);
  tensorboard::Summary summary;
  AddPluginValue("_hparams_/session_start_info", data, summary);
  return Write(summary, 0, UnixSeconds());
}

absl::Status TensorboardSink::Close(bool complete) {
  if (!has_hyperparameters_) return absl::OkStatus();
  tensorboard::HyperparameterData data;
  data.mutable_session_end_info()->set_status(complete ? tensorboard::STATUS_SUCCESS
                                                       : tensorboard::STATUS_FAILURE);
  data.mutable_session_end_info()->set_end_time_secs(UnixSeconds());
  tensorboard::Summary summary;
  AddPluginValue("_hparams_/session_end_info", data, summary);
  return Write(summary, 0, UnixSeconds());
}

}  // namespace

absl::StatusOr<std::unique_ptr<HistorySink>> MakeTensorboardSink(const std::string& folder,
                                                                 const TensorboardOptions& options) {
  PLAIT_RETURN_IF_ERROR(MakeRoomIn(folder, options));
  PLAIT_ASSIGN_OR_RETURN(AppendFile file, AppendFile::Create(EventFileName(folder), false));
  auto sink = std::make_unique<TensorboardSink>(std::move(file), !options.hyperparameters.empty());
  const absl::Status begun = sink->Begin(options);
  if (!begun.ok()) sink->Discard();
  PLAIT_RETURN_IF_ERROR(begun);
  return sink;
}

}  // namespace plait::data
