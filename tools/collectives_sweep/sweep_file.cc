#include "tools/collectives_sweep/sweep_file.h"

#include <hdf5_hl.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/file.h"
#include "data/hdf5/handle.h"
#include "data/hdf5/image_file.h"

namespace plait::collectives_sweep {
namespace {

using data::File;
using data::Handle;

class SweepFile {
 public:
  explicit SweepFile(File& file) : file_(file) {}

  File& file() { return file_; }

  // A coordinate of names, as netCDF-4 keeps strings: of any length, UTF-8.
  absl::Status AddNames(const std::string& name, const std::vector<std::string>& values) {
    const data::QuietHdf5 quiet;
    const hsize_t length[1] = {values.size()};
    const Handle type(H5Tcopy(H5T_C_S1));
    H5Tset_size(type.id(), H5T_VARIABLE);
    H5Tset_cset(type.id(), H5T_CSET_UTF8);
    const Handle space(H5Screate_simple(1, length, nullptr));
    const Handle array(
        H5Dcreate2(file_.id(), name.c_str(), type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    std::vector<const char*> pointers;
    for (const std::string& value : values) pointers.push_back(value.c_str());
    if (H5Dwrite(array.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()) < 0 ||
        H5DSset_scale(array.id(), name.c_str()) < 0) {
      return data::Hdf5Error(absl::StrCat(file_.path(), ": /", name), "cannot be written");
    }
    return absl::OkStatus();
  }

  absl::Status AddNumbers(const std::string& name, const std::vector<std::int64_t>& values,
                          const std::string& long_name) {
    const auto length = static_cast<std::int64_t>(values.size());
    PLAIT_RETURN_IF_ERROR(data::WriteArray<std::int64_t>(file_, "/" + name, values, {length}));
    PLAIT_RETURN_IF_ERROR(data::SetAttribute(file_, "/" + name, "long_name", long_name));
    const data::QuietHdf5 quiet;
    const Handle array(H5Dopen2(file_.id(), name.c_str(), H5P_DEFAULT));
    if (H5DSset_scale(array.id(), name.c_str()) >= 0) return absl::OkStatus();
    return data::Hdf5Error(absl::StrCat(file_.path(), ": /", name), "cannot become a dimension");
  }

  absl::Status AddVariable(const std::string& name, const std::vector<double>& values,
                           const std::vector<std::string>& dimensions, const std::string& units,
                           const std::string& long_name) {
    std::vector<std::int64_t> shape;
    for (const std::string& dimension : dimensions) {
      PLAIT_ASSIGN_OR_RETURN(const std::vector<std::int64_t> length,
                             data::ArrayShape(file_, "/" + dimension));
      shape.push_back(length[0]);
    }
    PLAIT_RETURN_IF_ERROR(data::WriteArray<double>(file_, "/" + name, values, shape));
    PLAIT_RETURN_IF_ERROR(data::SetAttribute(file_, "/" + name, "units", units));
    PLAIT_RETURN_IF_ERROR(data::SetAttribute(file_, "/" + name, "long_name", long_name));
    const data::QuietHdf5 quiet;
    const Handle array(H5Dopen2(file_.id(), name.c_str(), H5P_DEFAULT));
    for (unsigned i = 0; i < dimensions.size(); ++i) {
      const Handle scale(H5Dopen2(file_.id(), dimensions[i].c_str(), H5P_DEFAULT));
      if (H5DSattach_scale(array.id(), scale.id(), i) < 0)
        return data::Hdf5Error(absl::StrCat(file_.path(), ": /", name), "has no dimensions");
    }
    return absl::OkStatus();
  }

 private:
  File& file_;
};

std::vector<double> Cube(const Sweep& sweep, const std::vector<Swept>& operations,
                         const std::function<double(const Row&)>& value) {
  const std::size_t sizes = sweep.sizes.size(), groups = sweep.groups.size();
  std::vector<double> cube(operations.size() * groups * sizes, std::numeric_limits<double>::quiet_NaN());
  for (const Row& row : sweep.rows) {
    const auto place = std::find(operations.begin(), operations.end(), row.operation) - operations.begin();
    cube[(static_cast<std::size_t>(place) * groups + row.group) * sizes + row.size] = value(row);
  }
  return cube;
}

absl::Status AddMeasurements(SweepFile& out, const Sweep& sweep, const std::vector<Swept>& operations) {
  struct Variable {
    const char *name, *units, *long_name;
    std::function<double(const Row&)> value;
  };
  const std::vector<Variable> variables = {
      {"time", "s", "time of a call: median over repetitions of the slowest rank",
       [](const Row& r) { return r.seconds.median; }},
      {"time_min", "s", "least time over repetitions and ranks",
       [](const Row& r) { return r.seconds.least; }},
      {"time_max", "s", "greatest time over repetitions and ranks",
       [](const Row& r) { return r.seconds.greatest; }},
      {"algorithm_bandwidth", "bytes/s", "bytes / time",
       [](const Row& r) { return r.algorithm_bandwidth(); }},
      {"bus_bandwidth", "bytes/s", "algorithm bandwidth times the operation's factor (nccl-tests)",
       [](const Row& r) { return r.bus_bandwidth(); }},
      {"bytes", "bytes", "bytes of the message as sent",
       [](const Row& r) { return static_cast<double>(r.message.bytes); }},
      {"wrong", "1", "wrong elements", [](const Row& r) { return static_cast<double>(r.wrong); }}};
  for (const Variable& v : variables) {
    PLAIT_RETURN_IF_ERROR(out.AddVariable(v.name, Cube(sweep, operations, v.value),
                                          {"operation", "group", "size"}, v.units, v.long_name));
  }
  return absl::OkStatus();
}

absl::Status AddPairs(SweepFile& out, const PairMatrix& pairs) {
  if (pairs.ranks < 2) return absl::OkStatus();
  std::vector<std::int64_t> ranks(pairs.ranks);
  std::iota(ranks.begin(), ranks.end(), 0);
  PLAIT_RETURN_IF_ERROR(out.AddNumbers("rank", ranks, "rank"));
  PLAIT_RETURN_IF_ERROR(out.AddNumbers("partner", ranks, "rank at the other end"));
  std::vector<double> bandwidth;
  for (int a = 0; a < pairs.ranks; ++a) {
    for (int b = 0; b < pairs.ranks; ++b) bandwidth.push_back(pairs.bandwidth(a, b));
  }
  PLAIT_RETURN_IF_ERROR(out.AddVariable("pair_latency", pairs.short_seconds, {"rank", "partner"}, "s",
                                        "time of 8 bytes one way, the least of many"));
  return out.AddVariable("pair_bandwidth", bandwidth, {"rank", "partner"}, "bytes/s",
                         absl::StrCat("bandwidth of ", pairs.message_bytes, " bytes one way"));
}

absl::Status Fill(File& file, const Sweep& sweep, const PairMatrix& pairs, const SweepOptions& options,
                  const std::map<std::string, std::string>& attributes) {
  SweepFile out(file);
  std::map<std::string, std::string> all = attributes;
  all["Conventions"] = "CF-1.8";
  all["type"] = std::string(comm::Name(kType));
  all["reduction"] = "sum";
  all["root"] = absl::StrCat(kRoot);
  all["hosts"] = absl::StrJoin(pairs.hosts, " ");
  for (const auto& [name, text] : all) {
    PLAIT_RETURN_IF_ERROR(data::SetAttribute(out.file(), "/", name, text));
  }
  std::vector<std::string> names;
  for (const Swept operation : options.operations) names.emplace_back(Name(operation));
  PLAIT_RETURN_IF_ERROR(out.AddNames("operation", names));
  PLAIT_RETURN_IF_ERROR(out.AddNames("group", sweep.groups));
  PLAIT_RETURN_IF_ERROR(out.AddNumbers("size", sweep.sizes, "size asked for, in bytes"));
  PLAIT_RETURN_IF_ERROR(AddMeasurements(out, sweep, options.operations));
  return AddPairs(out, pairs);
}

}  // namespace

absl::Status WriteSweep(const std::string& path, const Sweep& sweep, const PairMatrix& pairs,
                        const SweepOptions& options, const std::map<std::string, std::string>& attributes) {
  return data::WriteAtomically(path, 0, [&](const std::string& partial) {
    return data::WriteOnDisk(partial,
                             [&](File& file) { return Fill(file, sweep, pairs, options, attributes); });
  });
}

}  // namespace plait::collectives_sweep
