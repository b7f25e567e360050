#include "tools/report_parts/mlflow_export.h"

#include <fcntl.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <system_error>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "data/hdf5/atomic_file.h"
#include "data/history/settings_line.h"
#include "nlohmann/json.hpp"
#include "tools/report_parts/curve_data.h"

namespace plait::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr char kExperiment[] = "0";
// MLflow's enumerations.
constexpr int kRunning = 1, kFinished = 3, kLocalSource = 4;

// A name that MLflow accepts, without path components that lead out of the directory.
std::string SafeName(const std::string& name) {
  std::vector<std::string> parts = absl::StrSplit(name, '/');
  for (std::string& part : parts) {
    for (char& c : part) {
      if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && !absl::StrContains("_-. :", c)) c = '_';
    }
    if (part.empty() || part == "." || part == "..") part.assign(1, '_');
  }
  return absl::StrJoin(parts, "/");
}

std::string FileUri(const fs::path& path) {
  std::string uri = "file://";
  for (const char c : path.string()) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("/-._~", c);
    if (plain) {
      uri += c;
    } else {
      absl::StrAppendFormat(&uri, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return uri;
}

std::string RunId(const std::string& path) {
  std::error_code error;
  const std::string whole = fs::weakly_canonical(path, error).string();
  const std::hash<std::string> hash;
  return absl::StrFormat("%016x%016x", hash(whole), hash(absl::StrCat("mlflow ", whole)));
}

absl::Status MakeFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(folder.string(), ": cannot be made: ", error.message()));
}

// Writes a file; ALREADY_EXISTS if it exists.
absl::Status WriteNew(const fs::path& folder, const std::string& name, const std::string& text) {
  const fs::path file = folder / SafeName(name);
  std::error_code error;
  if (fs::exists(file, error)) {
    return absl::AlreadyExistsError(
        absl::StrCat(file.string(), ": two names of the history become this one, the second is ", name));
  }
  PLAIT_RETURN_IF_ERROR(MakeFolder(file.parent_path()));
  return data::WriteWholeFile(file.string(), text);
}

std::string JsonText(const Json& json) {
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

absl::Time StartOf(const RunNumbers& run) {
  absl::Time start;
  std::string wrong;
  if (absl::ParseTime(absl::RFC3339_full, run.Attribute("started"), &start, &wrong)) return start;
  return absl::UnixEpoch();
}

struct Axes {
  std::vector<double> steps = {}, seconds = {};
  absl::Time start;
  std::int64_t Milliseconds(std::size_t draw) const {
    return absl::ToUnixMillis(start + absl::Seconds(seconds.empty() ? 0 : seconds[draw]));
  }
};

std::string MetricLines(const std::vector<double>& column, const Axes& axes, std::int64_t first) {
  std::string lines;
  for (std::size_t draw = first; draw < column.size(); ++draw) {
    if (std::isnan(column[draw])) continue;
    absl::StrAppendFormat(&lines, "%d %.17g %d\n", axes.Milliseconds(draw), column[draw],
                          std::llround(axes.steps[draw]));
  }
  return lines;
}

absl::Status WriteMetrics(const RunNumbers& run, const Axes& axes, const fs::path& folder) {
  PLAIT_RETURN_IF_ERROR(MakeFolder(folder));
  for (const MetricNumbers& numbers : run.metrics) {
    PLAIT_ASSIGN_OR_RETURN(const std::vector<double> column, run.table->Column(numbers.metric.name));
    const std::string lines = MetricLines(column, axes, run.skipped);
    // MLflow treats an empty file as damaged.
    if (!lines.empty()) PLAIT_RETURN_IF_ERROR(WriteNew(folder, numbers.metric.name, lines));
  }
  return absl::OkStatus();
}

absl::Status WriteTexts(const RunNumbers& run, const fs::path& folder) {
  PLAIT_RETURN_IF_ERROR(MakeFolder(folder / "params"));
  for (const auto& [name, value] : data::ParseSettings(run.Attribute("settings"))) {
    PLAIT_RETURN_IF_ERROR(WriteNew(folder / "params", name, base::Printable(value)));
  }
  NamedTexts tags = {{"mlflow.runName", run.label},
                     {"mlflow.source.name", run.Attribute("program")},
                     {"mlflow.source.type", "LOCAL"},
                     {"mlflow.source.git.commit", run.Attribute("revision")}};
  for (const auto& tag : run.attributes) {
    if (tag.first != "settings") tags.push_back(tag);
  }
  for (const auto& [name, value] : tags) {
    if (!value.empty()) PLAIT_RETURN_IF_ERROR(WriteNew(folder / "tags", name, base::Printable(value)));
  }
  return MakeFolder(folder / "artifacts");
}

Json RunMeta(const RunNumbers& run, const Axes& axes, const std::string& id, const fs::path& folder) {
  const Json end = run.complete ? Json(axes.Milliseconds(run.draws - 1)) : Json(nullptr);
  return {{"artifact_uri", FileUri(folder / "artifacts")},
          {"end_time", end},
          {"entry_point_name", ""},
          {"experiment_id", kExperiment},
          {"lifecycle_stage", "active"},
          {"run_id", id},
          {"run_uuid", id},
          {"run_name", run.label},
          {"source_name", ""},
          {"source_type", kLocalSource},
          {"source_version", ""},
          {"start_time", absl::ToUnixMillis(axes.start)},
          {"status", run.complete ? kFinished : kRunning},
          {"tags", Json::array()},
          {"user_id", ""}};
}

absl::Status WriteExperiment(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "meta.yaml", error)) return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(MakeFolder(folder));
  const std::int64_t now = absl::ToUnixMillis(absl::Now());
  // Another export may write the same at this moment.
  return data::WriteWholeFile((folder / "meta.yaml").string(),
                              JsonText({{"artifact_location", FileUri(folder)},
                                        {"creation_time", now},
                                        {"experiment_id", kExperiment},
                                        {"last_update_time", now},
                                        {"lifecycle_stage", "active"},
                                        {"name", "Default"}}));
}

absl::Status Move(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(to.string(), ": cannot be replaced: ", error.message()));
}

// `to` becomes what `from` is. Where the file system can exchange names (NFS and Lustre cannot), one of both is there at
// any moment.
absl::Status ReplaceFolder(const fs::path& from, const fs::path& to, const fs::path& old) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return absl::OkStatus();
  std::error_code error;
  fs::rename(to, old, error);  // may not exist
  return Move(from, to);
}

// The files below a folder, relative to it.
std::vector<fs::path> FilesBelow(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (entry.is_regular_file(error)) files.push_back(fs::relative(entry.path(), folder, error));
  }
  return files;
}

// Replaces what an earlier export wrote into the run's folder by what `partial` holds. All else stays: artifacts, and
// tags that people have set.
absl::Status Replace(const fs::path& partial, const fs::path& folder) {
  for (const fs::path& tag : FilesBelow(partial / "tags")) {
    PLAIT_RETURN_IF_ERROR(MakeFolder((folder / "tags" / tag).parent_path()));
    PLAIT_RETURN_IF_ERROR(Move(partial / "tags" / tag, folder / "tags" / tag));
  }
  for (const char* part : {"metrics", "params"}) {
    PLAIT_RETURN_IF_ERROR(ReplaceFolder(partial / part, folder / part, partial / absl::StrCat("old_", part)));
  }
  PLAIT_RETURN_IF_ERROR(Move(partial / "meta.yaml", folder / "meta.yaml"));
  std::error_code error;
  fs::remove_all(partial, error);
  return absl::OkStatus();
}

// Written under another name first, so that a new run appears atomically.
absl::Status WriteRun(const RunNumbers& run, const fs::path& experiment) {
  Axes axes = {.start = StartOf(run)};
  PLAIT_ASSIGN_OR_RETURN(axes.steps, StepsOf(run));
  PLAIT_ASSIGN_OR_RETURN(axes.seconds, SecondsOf(run));
  const std::string id = RunId(run.path);
  const fs::path folder = experiment / id, partial = data::PartialBeside(folder.string());
  std::error_code error;
  fs::remove_all(partial, error);
  absl::Status status = WriteMetrics(run, axes, partial / "metrics");
  if (status.ok()) status = WriteTexts(run, partial);
  if (status.ok()) status = WriteNew(partial, "meta.yaml", JsonText(RunMeta(run, axes, id, folder)));
  if (!status.ok()) {
    fs::remove_all(partial, error);
    return status;
  }
  fs::rename(partial, folder, error);
  if (!error) return absl::OkStatus();
  // There is such a run, perhaps one that another export has just made.
  return fs::is_directory(folder, error) ? Replace(partial, folder) : Move(partial, folder);
}

}  // namespace

absl::Status ExportToMlflow(absl::Span<const RunNumbers> runs, const std::string& folder) {
  std::error_code error;
  const fs::path experiment = fs::weakly_canonical(folder, error) / kExperiment;
  PLAIT_RETURN_IF_ERROR(WriteExperiment(experiment));
  for (const RunNumbers& run : runs) PLAIT_RETURN_IF_ERROR(WriteRun(run, experiment));
  return absl::OkStatus();
}

}  // namespace plait::report
