#include "data/history/history_file.h"

#include <hdf5_hl.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/hdf5/checked_array.h"
#include "data/hdf5/dimension.h"
#include "data/hdf5/file_image.h"
#include "data/hdf5/image_file.h"

namespace plait::data {
namespace {

constexpr char kFormat[] = "plait history";
constexpr std::int64_t kVersion = 3;
constexpr char kConventions[] = "CF-1.8";
constexpr char kDraw[] = "/draw";
constexpr std::int64_t kChunkDraws = 1024;
constexpr std::int64_t kChunkNumbers = 8 * kChunkDraws;
// A block is written once it holds that many draws, or numbers.
constexpr std::int64_t kBlockDraws = 4 * kChunkDraws;
constexpr std::int64_t kBlockNumbers = 1 << 20;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kNoInteger = -9223372036854775806;  // NC_FILL_INT64
constexpr char kFillValue[] = "_FillValue";

std::string PathOf(const Metric& metric) { return "/" + metric.name; }

std::string PathOf(const std::string& name) { return "/" + name; }

absl::Status MakeDrawDimension(File& file) {
  PLAIT_RETURN_IF_ERROR(CreateGrowing<std::int64_t>(file, kDraw, 0, kChunkDraws, 0));
  return MakeDimension(file, "draw");
}

// A dimension of fixed length with its coordinate, unless it is there.
absl::Status MakeFixedDimension(File& file, const std::string& name, std::int64_t length) {
  if (!file.Has(PathOf(name))) return MakeNumberedDimension(file, name, length);
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::int64_t> shape, ArrayShape(file, PathOf(name)));
  if (shape == std::vector<std::int64_t>{length}) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(file.path(), ": dimension ", name, " has another length than ", length));
}

bool IsDimension(const File& file, const std::string& name) {
  QuietHdf5 quiet;
  const Handle array(H5Dopen2(file.id(), PathOf(name).c_str(), H5P_DEFAULT));
  return array.ok() && H5DSis_scale(array.id()) > 0;
}

// The dimension scale of a vector's second axis; empty if none is attached.
std::string SecondDimension(const File& file, const std::string& name) {
  QuietHdf5 quiet;
  const Handle array(H5Dopen2(file.id(), PathOf(name).c_str(), H5P_DEFAULT));
  std::string dimension;
  const auto keep = [](hid_t, unsigned, hid_t scale, void* found) -> herr_t {
    char text[256] = "";
    H5DSget_scale_name(scale, text, sizeof(text));
    *static_cast<std::string*>(found) = text;
    return 1;
  };
  H5DSiterate_scales(array.id(), 1, nullptr, keep, &dimension);
  return dimension;
}

absl::StatusOr<std::string> TextOrNone(const File& file, const std::string& name, const char* attribute) {
  if (!HasAttribute(file, name, attribute)) return std::string();
  return TextAttribute(file, name, attribute);
}

bool HoldsIntegers(const File& file, const std::string& name) {
  const Handle array(H5Dopen2(file.id(), PathOf(name).c_str(), H5P_DEFAULT));
  const Handle type(H5Dget_type(array.id()));
  return H5Tget_class(type.id()) == H5T_INTEGER;
}

absl::StatusOr<Metric> MetricNamed(const File& file, const std::string& name) {
  Metric metric{name};
  PLAIT_ASSIGN_OR_RETURN(metric.units, TextOrNone(file, name, "units"));
  PLAIT_ASSIGN_OR_RETURN(metric.long_name, TextOrNone(file, name, "long_name"));
  PLAIT_ASSIGN_OR_RETURN(metric.statistic, TextOrNone(file, name, "statistic"));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::int64_t> shape, ArrayShape(file, PathOf(name)));
  if (shape.size() == 2) {
    metric.length = shape[1];
    metric.dimension = SecondDimension(file, name);
  }
  metric.integer = HoldsIntegers(file, name);
  return metric;
}

// Consecutive draws, by column; missing values are NaN.
struct Block {
  std::int64_t first = 0;
  std::int64_t draws = 0;
  std::int64_t numbers = 0;                  // held by the columns
  std::vector<std::vector<double>> columns;  // (draws, length), by metric of the journal
};

void Add(const JournalDraw& draw, const std::vector<Metric>& metrics, Block& block) {
  if (block.draws == 0) block.first = draw.draw;
  const std::int64_t place = draw.draw - block.first;
  block.draws = place + 1;
  const double* number = draw.numbers.data();
  for (const std::uint32_t id : draw.ids) {
    if (id >= block.columns.size()) block.columns.resize(id + 1);
    std::vector<double>& column = block.columns[id];
    const std::int64_t width = NumbersOf(metrics[id]);
    block.numbers += block.draws * width - static_cast<std::int64_t>(column.size());
    column.resize(block.draws * width, kNaN);
    std::copy_n(number, width, column.begin() + place * width);
    number += width;
  }
}

bool IsFull(const Block& block, std::int64_t next_draw) {
  return block.draws > 0 && (next_draw >= block.first + kBlockDraws || block.numbers >= kBlockNumbers);
}

// Marks elements that have the fill value as missing, for readers.
absl::Status NameFillValue(File& file, const std::string& path) {
  return HasAttribute(file, path, kFillValue) ? absl::OkStatus()
                                              : SetAttribute(file, path, kFillValue, kNoInteger);
}

absl::Status WriteColumn(File& file, const Metric& metric, std::int64_t first,
                         absl::Span<const double> column) {
  const std::string path = PathOf(metric);
  // A resumed file may have the metric as float64.
  if (!HoldsIntegers(file, metric.name)) return WriteRows<double>(file, path, first, column);
  std::vector<std::int64_t> whole;
  whole.reserve(column.size());
  for (const double value : column) {
    whole.push_back(IsWhole(value) ? static_cast<std::int64_t>(value) : kNoInteger);
  }
  if (std::count(whole.begin(), whole.end(), kNoInteger) > 0)
    PLAIT_RETURN_IF_ERROR(NameFillValue(file, path));
  return WriteRows<std::int64_t>(file, path, first, whole);
}

// Makes it `draws` long; new draws have no values yet.
absl::Status SetLength(File& file, const std::vector<Metric>& metrics, std::int64_t before,
                       std::int64_t draws) {
  for (const Metric& metric : metrics) PLAIT_RETURN_IF_ERROR(Resize(file, PathOf(metric), draws));
  PLAIT_RETURN_IF_ERROR(Resize(file, kDraw, draws));
  if (draws <= before) return absl::OkStatus();
  std::vector<std::int64_t> numbers(draws - before);
  std::iota(numbers.begin(), numbers.end(), before);
  return WriteRows<std::int64_t>(file, kDraw, before, numbers);
}

absl::Status Write(File& file, const std::vector<Metric>& metrics, Block& block) {
  if (block.draws == 0) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t before, DrawCount(file));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<Metric> held, MetricsOf(file));
  PLAIT_RETURN_IF_ERROR(SetLength(file, held, before, block.first + block.draws));
  block.columns.resize(metrics.size());
  for (std::size_t id = 0; id < metrics.size(); ++id) {
    std::vector<double>& column = block.columns[id];
    const std::string path = PathOf(metrics[id]);
    const bool is_held = file.Has(path);
    // Gaps among integers are written like their values, which names the fill value.
    if (column.empty() && !(is_held && metrics[id].integer)) continue;
    column.resize(block.draws * NumbersOf(metrics[id]), kNaN);
    if (!is_held) {
      PLAIT_RETURN_IF_ERROR(AddMetric(file, metrics[id]));
      if (metrics[id].integer && block.first > 0) PLAIT_RETURN_IF_ERROR(NameFillValue(file, path));
    }
    PLAIT_RETURN_IF_ERROR(WriteColumn(file, metrics[id], block.first, column));
  }
  block = {};
  return absl::OkStatus();
}

absl::Status CheckFormat(const File& file) {
  const absl::StatusOr<std::string> format = TextAttribute(file, "/", "format");
  if (!format.ok() || *format != kFormat)
    return absl::DataLossError(file.path() + ": an HDF5 file, but not a history");
  const absl::StatusOr<std::int64_t> version = IntAttribute(file, "/", "format_version");
  if (version.ok() && *version >= 1 && *version <= kVersion) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(file.path(), ": history of format ", version.ok() ? *version : -1,
                                          ", expected at most ", kVersion, ": a newer program wrote it"));
}

}  // namespace

absl::Status CreateHistoryFile(const std::string& path,
                               const std::map<std::string, std::string>& attributes) {
  FileImage image;  // HDF5 can crash after a failed write
  PLAIT_ASSIGN_OR_RETURN(File file, File::Create(path, image));
  PLAIT_RETURN_IF_ERROR(SetFormat(file, kFormat, kVersion));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "Conventions", kConventions));
  for (const auto& [name, text] : attributes) PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", name, text));
  PLAIT_RETURN_IF_ERROR(MakeDrawDimension(file));
  PLAIT_RETURN_IF_ERROR(file.Close());
  return WriteImage(image, path);
}

absl::StatusOr<File> OpenHistoryFile(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(File file, File::Open(path));
  PLAIT_RETURN_IF_ERROR(CheckFormat(file));
  return file;
}

absl::StatusOr<File> OpenHistoryFile(const std::string& path, FileImage& image) {
  PLAIT_ASSIGN_OR_RETURN(File file, File::Open(path, image));
  PLAIT_RETURN_IF_ERROR(CheckFormat(file));
  return file;
}

absl::Status MarkVersion(File& file) {
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "format_version", kVersion));
  return SetAttribute(file, "/", "Conventions", kConventions);
}

absl::StatusOr<std::int64_t> DrawCount(const File& file) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::int64_t> shape, ArrayShape(file, kDraw));
  if (shape.size() == 1) return shape[0];
  return absl::DataLossError(
      absl::StrCat(file.path(), ": ", kDraw, ": expected one dimension, it is damaged"));
}

absl::StatusOr<std::vector<Metric>> MetricsOf(const File& file) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> names, file.Names("/"));
  std::vector<Metric> metrics;
  for (const std::string& name : names) {
    if (IsDimension(file, name)) continue;
    PLAIT_ASSIGN_OR_RETURN(Metric metric, MetricNamed(file, name));
    metrics.push_back(std::move(metric));
  }
  return metrics;
}

absl::Status AddMetric(File& file, const Metric& metric) {
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t draws, DrawCount(file));
  const std::string path = PathOf(metric);
  const std::string dimension = DimensionOf(metric);
  std::int64_t chunk_rows = kChunkDraws;
  std::vector<std::int64_t> row;
  if (metric.length > 0) {
    chunk_rows = std::clamp<std::int64_t>(kChunkNumbers / metric.length, 1, kChunkDraws);
    row = {metric.length};
    PLAIT_RETURN_IF_ERROR(MakeFixedDimension(file, dimension, metric.length));
  }
  PLAIT_RETURN_IF_ERROR(metric.integer
                            ? CreateGrowing<std::int64_t>(file, path, draws, chunk_rows, kNoInteger, row)
                            : CreateGrowing<double>(file, path, draws, chunk_rows, kNaN, row));
  if (metric.length > 0) PLAIT_RETURN_IF_ERROR(AttachDimension(file, path, PathOf(dimension), 1));
  PLAIT_RETURN_IF_ERROR(AttachDimension(file, path, kDraw, 0));
  const std::pair<const char*, const std::string&> texts[] = {
      {"units", metric.units}, {"long_name", metric.long_name}, {"statistic", metric.statistic}};
  for (const auto& [name, text] : texts) {
    if (!text.empty()) PLAIT_RETURN_IF_ERROR(SetAttribute(file, path, name, text));
  }
  return absl::OkStatus();
}

absl::Status SetDrawCount(File& file, std::int64_t draws) {
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t before, DrawCount(file));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<Metric> metrics, MetricsOf(file));
  for (const Metric& metric : metrics) {
    if (metric.integer && draws > before) PLAIT_RETURN_IF_ERROR(NameFillValue(file, PathOf(metric)));
  }
  return SetLength(file, metrics, before, draws);
}

absl::StatusOr<std::int64_t> AppendJournal(File& file, const std::string& journal_path) {
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t held, DrawCount(file));
  const absl::StatusOr<std::int64_t> complete = IntAttribute(file, "/", "complete");
  if (complete.ok() && *complete == 1) return held;
  JournalReader journal(journal_path);
  Block block;
  std::int64_t next = held;
  for (JournalDraw draw; journal.Next(draw);) {
    if (draw.draw < held) continue;
    if (block.draws == 0 && draw.draw > next) break;  // a gap: the journal does not continue this file
    next = draw.draw + 1;
    if (IsFull(block, draw.draw)) PLAIT_RETURN_IF_ERROR(Write(file, journal.metrics(), block));
    Add(draw, journal.metrics(), block);
  }
  PLAIT_RETURN_IF_ERROR(Write(file, journal.metrics(), block));
  return DrawCount(file);
}

}  // namespace plait::data
