#include "data/history/history_table.h"

#include <hdf5.h>
#include <hdf5_hl.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "data/hdf5/handle.h"
#include "data/history/attribute_text.h"
#include "data/history/history_file.h"
#include "data/history/journal.h"

namespace plait::data {
namespace {

constexpr char kFormat[] = "plait history";
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// A run that commits meanwhile replaces the file, then truncates the journal.
constexpr int kAttempts = 5;
constexpr int kDeepestGroup = 4;
// Most numbers in memory at once: 8 GiB.
constexpr std::int64_t kMostNumbers = std::int64_t{1} << 30;

Handle OpenArray(const File& file, const std::string& name) {
  return Handle(H5Dopen2(file.id(), name.c_str(), H5P_DEFAULT));
}

std::vector<std::int64_t> Shape(const Handle& array) {
  const Handle space(H5Dget_space(array.id()));
  std::vector<hsize_t> extents(std::max(0, H5Sget_simple_extent_ndims(space.id())));
  H5Sget_simple_extent_dims(space.id(), extents.data(), nullptr);
  return {extents.begin(), extents.end()};
}

bool HoldsNumbers(const Handle& array) {
  const Handle type(H5Dget_type(array.id()));
  const H5T_class_t kind = H5Tget_class(type.id());
  return kind == H5T_INTEGER || kind == H5T_FLOAT;
}

// The single number in an attribute of the array; `otherwise` if it has none.
double NumberOf(const Handle& array, const char* name, double otherwise) {
  if (H5Aexists(array.id(), name) <= 0) return otherwise;
  const Handle attribute(H5Aopen(array.id(), name, H5P_DEFAULT));
  const Handle space(H5Aget_space(attribute.id()));
  double value = otherwise;
  if (H5Sget_simple_extent_npoints(space.id()) == 1) H5Aread(attribute.id(), H5T_NATIVE_DOUBLE, &value);
  return value;
}

// From what is stored to what is meant, as xarray does: NaN for the numbers that stand for no value, then the packing
// (CF conventions, sections 2.5.1 and 8.1).
void Decode(const Handle& array, absl::Span<double> values) {
  for (const char* none : {"_FillValue", "missing_value"}) {
    if (const double fill = NumberOf(array, none, kNaN); !std::isnan(fill)) {
      std::replace(values.begin(), values.end(), fill, kNaN);
    }
  }
  const double scale = NumberOf(array, "scale_factor", 1), offset = NumberOf(array, "add_offset", 0);
  if (scale == 1 && offset == 0) return;
  for (double& value : values) value = value * scale + offset;
}

// netCDF-4 writes a dimension without coordinates as an array whose values have no meaning.
bool IsBareDimension(const Handle& array) {
  return absl::StartsWith(AttributeAsText(array.id(), "NAME"), "This is a netCDF dimension but not");
}

// H5I_BADID for a group that is in `groups` already: groups may contain themselves.
H5I_type_t KindOf(const File& file, const std::string& name, std::set<haddr_t>& groups) {
  const Handle object(H5Oopen(file.id(), name.c_str(), H5P_DEFAULT));
  H5O_info_t about;
  if (!object.ok() || H5Oget_info1(object.id(), &about) < 0) return H5I_BADID;
  const H5I_type_t kind = H5Iget_type(object.id());
  return kind == H5I_GROUP && !groups.insert(about.addr).second ? H5I_BADID : kind;
}

// Arrays in `group` ("" is the root) and the groups in it, as "loss" or "loss/mean".
absl::Status ListArrays(const File& file, const std::string& group, int depth, std::set<haddr_t>& groups,
                        std::vector<std::string>& arrays) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> names, file.Names("/" + group));
  for (const std::string& name : names) {
    const std::string path = group.empty() ? name : absl::StrCat(group, "/", name);
    const H5I_type_t kind = KindOf(file, path, groups);
    if (kind == H5I_DATASET) arrays.push_back(path);
    if (kind == H5I_GROUP && depth < kDeepestGroup) {
      PLAIT_RETURN_IF_ERROR(ListArrays(file, path, depth + 1, groups, arrays));
    }
  }
  return absl::OkStatus();
}

herr_t KeepScaleName(hid_t, unsigned, hid_t scale, void* data) {
  auto* name = static_cast<std::string*>(data);
  char buffer[256] = "";
  if (H5Iget_name(scale, buffer, sizeof(buffer)) > 0) *name = buffer[0] == '/' ? buffer + 1 : buffer;
  return 1;
}

// The dimension scale of one of the array's dimensions; "" where there is none.
std::string ScaleOf(const Handle& array, int dimension) {
  std::string name;
  if (H5DSget_num_scales(array.id(), dimension) > 0) {
    H5DSiterate_scales(array.id(), dimension, nullptr, KeepScaleName, &name);
  }
  return name;
}

bool IsMetric(const Handle& array) {
  const std::size_t dimensions = Shape(array).size();
  return (dimensions == 1 || dimensions == 2) && HoldsNumbers(array) && H5DSis_scale(array.id()) <= 0;
}

bool IsCoordinate(const Handle& array) {
  return Shape(array).size() == 1 && HoldsNumbers(array) && !IsBareDimension(array);
}

// `draw`, else the dimension scale of the longest metric that has one: along it, shorter ones may have places. "" if
// none has.
std::string DimensionOfDraws(const File& file, const std::vector<std::string>& arrays) {
  std::string dimension;
  std::pair<std::int64_t, bool> size;  // length, and whether it has numbers
  for (const std::string& name : arrays) {
    const Handle array = OpenArray(file, name);
    std::string scale = IsMetric(array) ? ScaleOf(array, 0) : "";
    if (scale == "draw") return scale;
    if (scale.empty()) continue;
    const std::pair found(Shape(array)[0], IsCoordinate(OpenArray(file, scale)));
    if (!dimension.empty() && found <= size) continue;
    dimension = std::move(scale);
    size = found;
  }
  return dimension;
}

bool AscendsStrictly(const std::vector<double>& numbers) {
  return std::adjacent_find(numbers.begin(), numbers.end(), [](double a, double b) { return !(a < b); }) ==
         numbers.end();
}

}  // namespace

absl::StatusOr<HistoryTable> HistoryTable::Open(const std::string& path) {
  QuietHdf5 quiet;
  for (int attempt = 1;; ++attempt) {
    PLAIT_ASSIGN_OR_RETURN(File file, File::OpenForeign(path));
    HistoryTable table(std::move(file));
    PLAIT_RETURN_IF_ERROR(table.Load());
    if (!table.ReadJournal() && attempt < kAttempts) continue;
    if (table.draws_ > 0) return table;
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": holds no draws yet, so there is nothing to show"));
  }
}

absl::Status HistoryTable::Load() {
  is_history_ = AttributeAsText(file_.id(), "format") == kFormat;
  // Says what is wrong with the format's version.
  if (is_history_) PLAIT_RETURN_IF_ERROR(OpenHistoryFile(path()));
  ReadAttributes();
  return ReadMetrics();
}

void HistoryTable::ReadAttributes() {
  for (auto& [name, text] : AttributesAsText(file_.id())) {
    if (is_history_ && name == "complete") continue;
    if (name != "format" && name != "format_version") attributes_.emplace_back(name, std::move(text));
  }
  complete_ = !is_history_ || AttributeAsText(file_.id(), "complete") == "1";
}

absl::Status HistoryTable::ReadMetrics() {
  std::vector<std::string> names;
  std::set<haddr_t> groups;
  PLAIT_RETURN_IF_ERROR(ListArrays(file_, "", 0, groups, names));
  dimension_ = DimensionOfDraws(file_, names);
  coordinate_ =
      dimension_.empty() && std::count(names.begin(), names.end(), "draw") > 0 ? "draw" : dimension_;
  if (!IsCoordinate(OpenArray(file_, coordinate_))) coordinate_.clear();
  for (const std::string& name : names) PLAIT_RETURN_IF_ERROR(ReadMetric(name));
  if (metrics_.empty() && !is_history_) {
    return absl::DataLossError(absl::StrCat(path(), ": an HDF5 file without metrics: no array of numbers"));
  }
  if (!coordinate_.empty()) {
    file_draws_ = Shape(OpenArray(file_, coordinate_)).at(0);
    PLAIT_RETURN_IF_ERROR(CheckRoom(file_, coordinate_, {file_draws_}));
  }
  for (const auto& [name, rows] : stored_rows_) file_draws_ = std::max(file_draws_, rows);
  draws_ = file_draws_;
  return absl::OkStatus();
}

absl::Status HistoryTable::ReadMetric(const std::string& name) {
  const Handle array = OpenArray(file_, name);
  if (!array.ok()) return Hdf5Error(absl::StrCat(path(), ": ", name), "cannot be opened");
  if (name == coordinate_ || !IsMetric(array)) return absl::OkStatus();
  const std::vector<std::int64_t> shape = Shape(array);
  TableMetric metric = {.name = name,
                        .units = AttributeAsText(array.id(), "units"),
                        .long_name = AttributeAsText(array.id(), "long_name"),
                        .statistic = AttributeAsText(array.id(), "statistic"),
                        .dimension = shape.size() == 2 ? ScaleOf(array, 1) : "",
                        .width = shape.size() == 2 ? shape[1] : 1,
                        .is_vector = shape.size() == 2};
  PLAIT_RETURN_IF_ERROR(CheckRoom(file_, name, {shape[0]}));
  if (std::string reason = PlaceRows(ScaleOf(array, 0), shape[0], metric); !reason.empty()) {
    left_out_.push_back({name, std::move(reason)});
    return absl::OkStatus();
  }
  stored_rows_[name] = shape[0];
  metrics_.push_back(std::move(metric));
  return absl::OkStatus();
}

// Finds the draws of the metric's rows, which are along `scale`. Why that fails; "" if it does not.
std::string HistoryTable::PlaceRows(const std::string& scale, std::int64_t rows, TableMetric& metric) {
  if (is_history_ || dimension_.empty() || scale == dimension_) return "";
  const Handle own = OpenArray(file_, scale);
  if (!coordinate_.empty() && IsCoordinate(own) && Shape(own)[0] == rows) {
    metric.coordinate = scale;
    return FindPlaces(scale);
  }
  const std::vector<std::int64_t> draws = Shape(OpenArray(file_, dimension_));
  if (draws.empty() || draws[0] == rows) return "";
  return absl::StrCat("no coordinate tells at which of the ", draws[0], " draws its ", rows, " values are");
}

// Sets places_[scale]. Why that fails; "" if it does not.
std::string HistoryTable::FindPlaces(const std::string& scale) {
  if (places_.count(scale) > 0) return "";
  const absl::StatusOr<std::vector<double>> own = Coordinate(scale), draws = Coordinate(coordinate_);
  if (!own.ok()) return std::string(own.status().message());
  if (!draws.ok()) return std::string(draws.status().message());
  const std::string units = AttributeAsText(OpenArray(file_, scale).id(), "units");
  const std::string units_of_draws = AttributeAsText(OpenArray(file_, coordinate_).id(), "units");
  if (units != units_of_draws) {
    return absl::StrCat("its coordinate ", scale, " is in \"", units, "\" and ", coordinate_,
                        ", that of the draws, in \"", units_of_draws, "\"");
  }
  if (!AscendsStrictly(*own) || !AscendsStrictly(*draws)) {
    return absl::StrCat("its coordinate ", scale, " or that of the draws, ", coordinate_,
                        ", does not ascend strictly");
  }
  std::vector<std::int64_t> places;
  for (const double number : *own) {
    const auto place = std::lower_bound(draws->begin(), draws->end(), number);
    if (place == draws->end() || *place != number) {
      return absl::StrFormat("its coordinate %s has %.10g, which %s, that of the draws, has not", scale,
                             number, coordinate_);
    }
    places.push_back(place - draws->begin());
  }
  places_[scale] = std::move(places);
  return "";
}

absl::StatusOr<std::vector<double>> HistoryTable::Coordinate(const std::string& name) const {
  const std::int64_t rows = Shape(OpenArray(file_, name)).at(0);
  PLAIT_RETURN_IF_ERROR(CheckRoom(file_, name, {rows}));
  std::vector<double> numbers(rows);
  PLAIT_RETURN_IF_ERROR(ReadStored(name, 0, rows, {0, 1}, absl::MakeSpan(numbers)));
  return numbers;
}

// False where the journal begins after the file's last draw: the run has just brought the file up to date.
bool HistoryTable::ReadJournal() {
  // Beside a complete file lies another run's, if any.
  if (!is_history_ || complete_) return true;
  JournalReader journal(JournalPathOf(path()));
  for (JournalDraw draw; journal.Next(draw);) {
    if (draw.draw < draws_) continue;
    if (draw.draw > draws_ && draws_ == file_draws_) return false;
    draws_ = draw.draw + 1;
    const double* numbers = draw.numbers.data();
    for (const std::uint32_t id : draw.ids) {
      const Metric& metric = journal.metrics().at(id);
      if (!AddToTail(metric, absl::MakeConstSpan(numbers, NumbersOf(metric)))) return true;
      numbers += NumbersOf(metric);
    }
  }
  return true;
}

// Adds values of the latest draw. False if they do not have the metric's width, or are too many.
bool HistoryTable::AddToTail(const Metric& metric, absl::Span<const double> values) {
  const auto width = static_cast<std::int64_t>(values.size());
  const TableMetric* known = Find(metric.name);
  if (known != nullptr && known->width != width) return false;
  if (draws_ - file_draws_ > kMostNumbers / width) return false;
  std::vector<double>& tail = tail_[metric.name];
  if (known == nullptr) {
    metrics_.push_back({.name = metric.name,
                        .units = metric.units,
                        .long_name = metric.long_name,
                        .statistic = metric.statistic,
                        .dimension = metric.length > 0 ? DimensionOf(metric) : "",
                        .width = NumbersOf(metric),
                        .is_vector = metric.length > 0});
  }
  tail.resize((draws_ - file_draws_) * values.size(), kNaN);
  std::copy(values.begin(), values.end(), tail.end() - width);
  return true;
}

const TableMetric* HistoryTable::Find(const std::string& name) const {
  const auto found = std::find_if(metrics_.begin(), metrics_.end(),
                                  [&](const TableMetric& metric) { return metric.name == name; });
  return found == metrics_.end() ? nullptr : &*found;
}

std::string HistoryTable::Attribute(const std::string& name) const {
  for (const auto& [known, text] : attributes_) {
    if (known == name) return text;
  }
  return "";
}

absl::StatusOr<std::vector<double>> HistoryTable::DrawNumbers() const {
  std::vector<double> numbers(draws_);
  std::iota(numbers.begin(), numbers.end(), 0.0);
  if (coordinate_.empty()) return numbers;
  PLAIT_ASSIGN_OR_RETURN(const std::vector<double> coordinate, Coordinate(coordinate_));
  std::copy_n(coordinate.begin(), std::min(coordinate.size(), numbers.size()), numbers.begin());
  return numbers;
}

absl::StatusOr<std::vector<double>> HistoryTable::Column(const std::string& name, std::int64_t entry) const {
  const TableMetric* metric = Find(name);
  if (metric == nullptr) return absl::NotFoundError(absl::StrCat(path(), ": has no metric ", name));
  if (entry < 0 || entry >= metric->width) {
    return absl::InvalidArgumentError(
        absl::StrCat(path(), ": ", name, " has ", metric->width, " values per draw, none numbered ", entry));
  }
  std::vector<double> values(draws_, kNaN);
  PLAIT_RETURN_IF_ERROR(ReadDraws(*metric, 0, draws_, {entry, 1}, absl::MakeSpan(values)));
  const auto tail = tail_.find(name);
  if (tail == tail_.end()) return values;
  for (std::size_t at = entry, draw = file_draws_; at < tail->second.size(); at += metric->width, ++draw) {
    values[draw] = tail->second[at];
  }
  return values;
}

absl::StatusOr<std::vector<double>> HistoryTable::Rows(const std::string& name, std::int64_t first,
                                                       std::int64_t count) const {
  const TableMetric* metric = Find(name);
  if (metric == nullptr) return absl::NotFoundError(absl::StrCat(path(), ": has no metric ", name));
  if (first < 0 || count < 0 || count > draws_ - first) {
    return absl::InvalidArgumentError(
        absl::StrCat(path(), ": has ", draws_, " draws; ", count, " from ", first, " on are not among them"));
  }
  if (metric->width > kMostNumbers / std::max<std::int64_t>(count, 1)) {
    return absl::ResourceExhaustedError(absl::StrCat(path(), ": ", name, ": ", count, " draws of ",
                                                     metric->width, " values are too many at once"));
  }
  std::vector<double> values(count * metric->width, kNaN);
  PLAIT_RETURN_IF_ERROR(ReadDraws(*metric, first, count, {0, metric->width}, absl::MakeSpan(values)));
  const auto tail = tail_.find(name);
  if (tail == tail_.end()) return values;
  // The tail begins at draw file_draws_.
  const std::int64_t begin = std::max(first, file_draws_);
  const std::int64_t end =
      std::min(first + count, file_draws_ + std::int64_t(tail->second.size()) / metric->width);
  for (std::int64_t i = begin * metric->width; i < end * metric->width; ++i) {
    values[i - first * metric->width] = tail->second[i - file_draws_ * metric->width];
  }
  return values;
}

// Reads those of draws [first, first + draws) that the file has into `out`, which holds NaN.
absl::Status HistoryTable::ReadDraws(const TableMetric& metric, std::int64_t first, std::int64_t draws,
                                     Entries entries, absl::Span<double> out) const {
  const auto stored = stored_rows_.find(metric.name);
  if (stored == stored_rows_.end()) return absl::OkStatus();
  if (metric.coordinate.empty()) {
    const std::int64_t rows = std::max<std::int64_t>(0, std::min(draws, stored->second - first));
    return ReadStored(metric.name, first, rows, entries, out.first(rows * entries.count));
  }
  const std::vector<std::int64_t>& places = places_.at(metric.coordinate);
  const auto begin = std::lower_bound(places.begin(), places.end(), first);
  const std::int64_t rows = std::lower_bound(begin, places.end(), first + draws) - begin;
  PLAIT_RETURN_IF_ERROR(
      ReadStored(metric.name, begin - places.begin(), rows, entries, out.first(rows * entries.count)));
  // No row moves to the front: the last one first, none is overwritten.
  for (std::int64_t row = rows; row-- > 0 && begin[row] - first > row;) {
    for (std::int64_t entry = 0; entry < entries.count; ++entry) {
      out[(begin[row] - first) * entries.count + entry] =
          std::exchange(out[row * entries.count + entry], kNaN);
    }
  }
  return absl::OkStatus();
}

absl::Status HistoryTable::ReadStored(const std::string& name, std::int64_t first, std::int64_t rows,
                                      Entries entries, absl::Span<double> out) const {
  if (out.empty()) return absl::OkStatus();
  QuietHdf5 quiet;
  const Handle array = OpenArray(file_, name);
  const Handle stored(H5Dget_space(array.id()));
  const hsize_t offset[] = {hsize_t(first), hsize_t(entries.first)};
  const hsize_t extent[] = {hsize_t(rows), hsize_t(entries.count)};
  H5Sselect_hyperslab(stored.id(), H5S_SELECT_SET, offset, nullptr, extent, nullptr);
  const hsize_t size = out.size();
  const Handle memory(H5Screate_simple(1, &size, nullptr));
  if (H5Dread(array.id(), H5T_NATIVE_DOUBLE, memory.id(), stored.id(), H5P_DEFAULT, out.data()) < 0) {
    return Hdf5Error(absl::StrCat(path(), ": ", name), "cannot be read");
  }
  Decode(array, out);
  return absl::OkStatus();
}

}  // namespace plait::data
