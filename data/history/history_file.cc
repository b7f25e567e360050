#include "data/history/history_file.h"

#include <hdf5_hl.h>

#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plait::data {
namespace {

constexpr char kFormat[] = "plait history";
constexpr std::int64_t kVersion = 1;
constexpr char kDraw[] = "/draw";
constexpr std::int64_t kChunkDraws = 1024;
constexpr std::int64_t kBlockDraws = 4 * kChunkDraws;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::string PathOf(const Metric& metric) { return "/" + metric.name; }

// HDF5's dimension scales are what netCDF-4 calls dimensions and coordinate variables.
absl::Status MakeDrawDimension(File& file) {
  PLAIT_RETURN_IF_ERROR(CreateGrowing<std::int64_t>(file, kDraw, 0, kChunkDraws, 0));
  QuietHdf5 quiet;
  const Handle draw(H5Dopen2(file.id(), kDraw, H5P_DEFAULT));
  if (H5DSset_scale(draw.id(), "draw") < 0) return Hdf5Error(file.path(), "draw cannot become a dimension");
  return SetAttribute(file, kDraw, "long_name", "draw");
}

absl::Status AttachDraw(File& file, const std::string& variable) {
  QuietHdf5 quiet;
  const Handle draw(H5Dopen2(file.id(), kDraw, H5P_DEFAULT));
  const Handle array(H5Dopen2(file.id(), variable.c_str(), H5P_DEFAULT));
  if (H5DSattach_scale(array.id(), draw.id(), 0) < 0) {
    return Hdf5Error(absl::StrCat(file.path(), ": ", variable), "cannot be put along draw");
  }
  return absl::OkStatus();
}

// A few thousand draws, column by column; what is not given is NaN.
struct Block {
  std::int64_t first = 0;
  std::int64_t draws = 0;
  std::vector<std::vector<double>> columns;  // by metric of the journal
};

void Add(const JournalDraw& draw, Block& block) {
  if (block.draws == 0) block.first = draw.draw;
  const std::int64_t place = draw.draw - block.first;
  block.draws = place + 1;
  for (const auto& [id, value] : draw.values) {
    if (id >= block.columns.size()) block.columns.resize(id + 1);
    block.columns[id].resize(kBlockDraws, kNaN);
    block.columns[id][place] = value;
  }
}

absl::Status Write(File& file, const std::vector<Metric>& metrics, Block& block) {
  if (block.draws == 0) return absl::OkStatus();
  PLAIT_RETURN_IF_ERROR(SetDrawCount(file, block.first + block.draws));
  for (std::size_t id = 0; id < block.columns.size(); ++id) {
    if (block.columns[id].empty()) continue;
    if (!file.Has(PathOf(metrics[id]))) PLAIT_RETURN_IF_ERROR(AddMetric(file, metrics[id]));
    PLAIT_RETURN_IF_ERROR(WriteRows<double>(file, PathOf(metrics[id]), block.first,
                                            absl::MakeConstSpan(block.columns[id]).first(block.draws)));
  }
  block = {};
  return absl::OkStatus();
}

}  // namespace

absl::Status CreateHistoryFile(const std::string& path,
                               const std::map<std::string, std::string>& attributes) {
  PLAIT_ASSIGN_OR_RETURN(File file, File::Create(path));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "format", kFormat));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "format_version", kVersion));
  for (const auto& [name, text] : attributes) PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", name, text));
  PLAIT_RETURN_IF_ERROR(MakeDrawDimension(file));
  return file.Close();
}

absl::StatusOr<File> OpenHistoryFile(const std::string& path, File::Mode mode) {
  PLAIT_ASSIGN_OR_RETURN(File file, File::Open(path, mode));
  const absl::StatusOr<std::string> format = TextAttribute(file, "/", "format");
  if (!format.ok() || *format != kFormat)
    return absl::DataLossError(path + ": an HDF5 file, but not a history");
  const absl::StatusOr<std::int64_t> version = IntAttribute(file, "/", "format_version");
  if (version.ok() && *version == kVersion) return file;
  return absl::DataLossError(
      absl::StrCat(path, ": history of format ", version.ok() ? *version : -1, ", expected ", kVersion));
}

absl::StatusOr<std::int64_t> DrawCount(const File& file) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::int64_t> shape, ArrayShape(file, kDraw));
  return shape.at(0);
}

absl::StatusOr<std::vector<Metric>> MetricsOf(const File& file) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> names, file.Names("/"));
  std::vector<Metric> metrics;
  for (const std::string& name : names) {
    if ("/" + name == kDraw) continue;
    Metric metric{name, "", ""};
    if (HasAttribute(file, name, "units")) {
      PLAIT_ASSIGN_OR_RETURN(metric.units, TextAttribute(file, name, "units"));
    }
    if (HasAttribute(file, name, "long_name")) {
      PLAIT_ASSIGN_OR_RETURN(metric.long_name, TextAttribute(file, name, "long_name"));
    }
    metrics.push_back(std::move(metric));
  }
  return metrics;
}

absl::Status AddMetric(File& file, const Metric& metric) {
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t draws, DrawCount(file));
  const std::string path = PathOf(metric);
  PLAIT_RETURN_IF_ERROR(CreateGrowing<double>(file, path, draws, kChunkDraws, kNaN));
  PLAIT_RETURN_IF_ERROR(AttachDraw(file, path));
  if (!metric.units.empty()) PLAIT_RETURN_IF_ERROR(SetAttribute(file, path, "units", metric.units));
  if (metric.long_name.empty()) return absl::OkStatus();
  return SetAttribute(file, path, "long_name", metric.long_name);
}

absl::Status SetDrawCount(File& file, std::int64_t draws) {
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t before, DrawCount(file));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<Metric> metrics, MetricsOf(file));
  for (const Metric& metric : metrics) PLAIT_RETURN_IF_ERROR(Resize(file, PathOf(metric), draws));
  PLAIT_RETURN_IF_ERROR(Resize(file, kDraw, draws));
  if (draws <= before) return absl::OkStatus();
  std::vector<std::int64_t> numbers(draws - before);
  std::iota(numbers.begin(), numbers.end(), before);
  return WriteRows<std::int64_t>(file, kDraw, before, numbers);
}

absl::StatusOr<std::int64_t> AppendJournal(File& file, const std::string& journal_path) {
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t held, DrawCount(file));
  JournalReader journal(journal_path);
  Block block;
  for (JournalDraw draw; journal.Next(draw);) {
    if (draw.draw < held) continue;
    if (block.draws > 0 && draw.draw >= block.first + kBlockDraws) {
      PLAIT_RETURN_IF_ERROR(Write(file, journal.metrics(), block));
    }
    Add(draw, block);
  }
  PLAIT_RETURN_IF_ERROR(Write(file, journal.metrics(), block));
  return DrawCount(file);
}

}  // namespace plait::data
