#include "data/prepared.h"

#include <zlib.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/file.h"

namespace plait::data {
namespace {

constexpr char kFormat[] = "plait sequences";
constexpr std::int64_t kVersion = 1;

template <typename T>
std::int64_t Checksum(const std::vector<T>& values) {
  return crc32_z(0, reinterpret_cast<const Bytef*>(values.data()), values.size() * sizeof(T));
}

template <typename T>
absl::Status WriteChecked(File& file, const std::string& name, const std::vector<T>& values,
                          const std::vector<std::int64_t>& shape) {
  PLAIT_RETURN_IF_ERROR(WriteArray<T>(file, name, values, shape));
  return SetAttribute(file, name, "crc32", Checksum(values));
}

absl::Status WriteSplit(File& file, const std::string& group, const SequenceSplit& split) {
  PLAIT_RETURN_IF_ERROR(
      WriteChecked(file, group + "/x", split.x, {split.samples(), split.steps, split.channels}));
  PLAIT_RETURN_IF_ERROR(WriteChecked(file, group + "/y", split.y, {split.samples()}));
  return WriteChecked(file, group + "/subject", split.subject, {split.samples()});
}

absl::Status WriteAll(const std::string& path, const SequenceSet& set, const std::string& key) {
  PLAIT_ASSIGN_OR_RETURN(File file, File::Create(path));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "format", kFormat));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "format_version", kVersion));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "key", key));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "source", set.source));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "synthetic", std::int64_t{set.synthetic}));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "classes", absl::StrJoin(set.class_names, "\n")));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "created",
                                     absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone())));
  PLAIT_RETURN_IF_ERROR(WriteSplit(file, "/train", set.train));
  PLAIT_RETURN_IF_ERROR(WriteSplit(file, "/test", set.test));
  return file.Close();
}

absl::Status Damaged(const File& file, const std::string& what) {
  return absl::DataLossError(absl::StrCat(file.path(), ": ", what));
}

// What a sound file of another kind lacks is DataLoss too.
absl::Status AsDamage(const absl::Status& status) {
  if (status.ok()) return status;
  return absl::DataLossError(status.message());
}

absl::StatusOr<File> OpenChecked(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(File file, File::Open(path));
  const absl::StatusOr<std::string> format = TextAttribute(file, "/", "format");
  if (!format.ok() || *format != kFormat) return Damaged(file, "an HDF5 file, but not prepared sequences");
  const absl::StatusOr<std::int64_t> version = IntAttribute(file, "/", "format_version");
  if (!version.ok() || *version != kVersion) {
    return Damaged(file, absl::StrCat("prepared sequences of format ", version.ok() ? *version : -1,
                                      ", expected ", kVersion));
  }
  return file;
}

template <typename T>
absl::Status Verify(const File& file, const std::string& name, const std::vector<T>& values) {
  const absl::StatusOr<std::int64_t> expected = IntAttribute(file, name, "crc32");
  if (!expected.ok()) return AsDamage(expected.status());
  if (*expected == Checksum(values)) return absl::OkStatus();
  return Damaged(file, absl::StrCat(name, ": checksum does not match, the file is damaged"));
}

template <typename T>
absl::StatusOr<std::vector<T>> ReadList(const File& file, const std::string& name, std::int64_t samples,
                                        bool verify) {
  absl::StatusOr<std::vector<T>> values = ReadArray<T>(file, name);
  if (!values.ok()) return AsDamage(values.status());
  if (static_cast<std::int64_t>(values->size()) != samples) {
    return Damaged(file, absl::StrCat(name, ": ", values->size(), " numbers for ", samples, " sequences"));
  }
  if (verify) PLAIT_RETURN_IF_ERROR(Verify(file, name, *values));
  return values;
}

absl::StatusOr<SequenceSplit> ReadSplit(const File& file, const std::string& group, std::int64_t classes,
                                        const ReadPreparedOptions& options) {
  const absl::StatusOr<std::vector<std::int64_t>> shape = ArrayShape(file, group + "/x");
  if (!shape.ok()) return AsDamage(shape.status());
  if (shape->size() != 3) return Damaged(file, group + "/x: expected three dimensions");
  const std::int64_t samples = (*shape)[0], all_steps = (*shape)[1], channels = (*shape)[2];
  const std::int64_t steps = options.steps < 0 ? all_steps - options.first_step : options.steps;
  SequenceSplit split{steps, channels, {}, {}, {}};
  absl::StatusOr<std::vector<float>> x =
      ReadBlock<float>(file, group + "/x", {0, options.first_step, 0}, {samples, steps, channels});
  if (!x.ok()) return x.status();
  split.x = *std::move(x);
  if (options.verify && steps == all_steps) PLAIT_RETURN_IF_ERROR(Verify(file, group + "/x", split.x));
  PLAIT_ASSIGN_OR_RETURN(split.y, ReadList<std::int64_t>(file, group + "/y", samples, options.verify));
  PLAIT_ASSIGN_OR_RETURN(split.subject,
                         ReadList<std::int64_t>(file, group + "/subject", samples, options.verify));
  const auto out_of_range = [&](std::int64_t label) { return label < 0 || label >= classes; };
  if (std::any_of(split.y.begin(), split.y.end(), out_of_range)) {
    return Damaged(file, absl::StrCat(group, "/y: a label outside 0..", classes - 1));
  }
  return options.fraction < 1 ? Thinned(split, options.fraction) : std::move(split);
}

}  // namespace

absl::Status WritePrepared(const std::string& path, const SequenceSet& set, const std::string& key) {
  constexpr std::int64_t kOverhead = 1 << 16;
  const std::int64_t bytes = (set.train.x.size() + set.test.x.size()) * sizeof(float) +
                             2 * (set.train.y.size() + set.test.y.size()) * sizeof(std::int64_t) + kOverhead;
  return WriteAtomically(path, bytes,
                         [&](const std::string& partial) { return WriteAll(partial, set, key); });
}

absl::StatusOr<SequenceSet> ReadPrepared(const std::string& path, const ReadPreparedOptions& options) {
  PLAIT_ASSIGN_OR_RETURN(const File file, OpenChecked(path));
  SequenceSet set;
  const absl::StatusOr<std::string> source = TextAttribute(file, "/", "source");
  const absl::StatusOr<std::string> classes = TextAttribute(file, "/", "classes");
  const absl::StatusOr<std::int64_t> synthetic = IntAttribute(file, "/", "synthetic");
  for (const absl::Status& status : {source.status(), classes.status(), synthetic.status()}) {
    PLAIT_RETURN_IF_ERROR(AsDamage(status));
  }
  set.source = *source;
  set.class_names = absl::StrSplit(*classes, '\n');
  set.synthetic = *synthetic != 0;
  const std::int64_t class_count = set.class_names.size();
  PLAIT_ASSIGN_OR_RETURN(set.train, ReadSplit(file, "/train", class_count, options));
  PLAIT_ASSIGN_OR_RETURN(set.test, ReadSplit(file, "/test", class_count, options));
  return set;
}

absl::StatusOr<std::string> PreparedKey(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const File file, OpenChecked(path));
  return TextAttribute(file, "/", "key");
}

}  // namespace plait::data
