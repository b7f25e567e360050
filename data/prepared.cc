#include "data/prepared.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/checked_array.h"
#include "data/hdf5/file.h"
#include "data/hdf5/image_file.h"

namespace plait::data {
namespace {

constexpr char kFormat[] = "plait sequences";
constexpr std::int64_t kVersion = 1;

absl::Status WriteSplit(File& file, const std::string& group, const SequenceSplit& split) {
  PLAIT_RETURN_IF_ERROR(
      WriteChecked<float>(file, group + "/x", split.x, {split.samples(), split.steps, split.channels}));
  PLAIT_RETURN_IF_ERROR(WriteChecked<std::int64_t>(file, group + "/y", split.y, {split.samples()}));
  return WriteChecked<std::int64_t>(file, group + "/subject", split.subject, {split.samples()});
}

absl::Status WriteAll(File& file, const SequenceSet& set, const std::string& key) {
  PLAIT_RETURN_IF_ERROR(SetFormat(file, kFormat, kVersion));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "key", key));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "source", set.source));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "synthetic", std::int64_t{set.synthetic}));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "classes", absl::StrJoin(set.class_names, "\n")));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "created",
                                     absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone())));
  PLAIT_RETURN_IF_ERROR(WriteSplit(file, "/train", set.train));
  return WriteSplit(file, "/test", set.test);
}

absl::Status Damaged(const File& file, const std::string& what) {
  return absl::DataLossError(absl::StrCat(file.path(), ": ", what));
}

absl::StatusOr<File> OpenPrepared(const std::string& path) {
  return OpenFormat(path, kFormat, kVersion, "prepared sequences");
}

template <typename T>
absl::StatusOr<std::vector<T>> ReadList(const File& file, const std::string& name, std::int64_t samples,
                                        bool verify) {
  PLAIT_ASSIGN_OR_RETURN(std::vector<T> values, OrDamage(ReadArray<T>(file, name)));
  if (static_cast<std::int64_t>(values.size()) != samples) {
    return Damaged(file, absl::StrCat(name, ": ", values.size(), " numbers for ", samples, " sequences"));
  }
  if (verify) PLAIT_RETURN_IF_ERROR(CheckChecksum(file, name, Crc32<T>(values)));
  return values;
}

absl::StatusOr<SequenceSplit> ReadSplit(const File& file, const std::string& group, std::int64_t classes,
                                        const ReadPreparedOptions& options) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::int64_t> shape, OrDamage(ArrayShape(file, group + "/x")));
  if (shape.size() != 3) return Damaged(file, group + "/x: expected three dimensions");
  const std::int64_t samples = shape[0], all_steps = shape[1], channels = shape[2];
  const std::int64_t steps = options.steps < 0 ? all_steps - options.first_step : options.steps;
  SequenceSplit split{steps, channels, {}, {}, {}};
  PLAIT_ASSIGN_OR_RETURN(
      split.x, ReadBlock<float>(file, group + "/x", {0, options.first_step, 0}, {samples, steps, channels}));
  if (options.verify && steps == all_steps) {
    PLAIT_RETURN_IF_ERROR(CheckChecksum(file, group + "/x", Crc32<float>(split.x)));
  }
  PLAIT_ASSIGN_OR_RETURN(split.y, ReadList<std::int64_t>(file, group + "/y", samples, options.verify));
  PLAIT_ASSIGN_OR_RETURN(split.subject,
                         ReadList<std::int64_t>(file, group + "/subject", samples, options.verify));
  const auto out_of_range = [&](std::int64_t label) { return label < 0 || label >= classes; };
  if (std::any_of(split.y.begin(), split.y.end(), out_of_range)) {
    return Damaged(file, absl::StrCat(group, "/y: a label outside 0..", classes - 1));
  }
  return options.fraction < 1 ? Subsampled(split, options.fraction) : std::move(split);
}

}  // namespace

absl::Status WritePrepared(const std::string& path, const SequenceSet& set, const std::string& key) {
  constexpr std::int64_t kOverhead = 1 << 16;
  const std::int64_t bytes = (set.train.x.size() + set.test.x.size()) * sizeof(float) +
                             2 * (set.train.y.size() + set.test.y.size()) * sizeof(std::int64_t) + kOverhead;
  return WriteAtomically(path, bytes, [&](const std::string& partial) {
    return WriteOnDisk(partial, [&](File& file) { return WriteAll(file, set, key); });
  });
}

absl::StatusOr<SequenceSet> ReadPrepared(const std::string& path, const ReadPreparedOptions& options) {
  PLAIT_ASSIGN_OR_RETURN(const File file, OpenPrepared(path));
  SequenceSet set;
  PLAIT_ASSIGN_OR_RETURN(set.source, OrDamage(TextAttribute(file, "/", "source")));
  PLAIT_ASSIGN_OR_RETURN(const std::string classes, OrDamage(TextAttribute(file, "/", "classes")));
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t synthetic, OrDamage(IntAttribute(file, "/", "synthetic")));
  set.class_names = absl::StrSplit(classes, '\n');
  set.synthetic = synthetic != 0;
  const std::int64_t class_count = set.class_names.size();
  PLAIT_ASSIGN_OR_RETURN(set.train, ReadSplit(file, "/train", class_count, options));
  PLAIT_ASSIGN_OR_RETURN(set.test, ReadSplit(file, "/test", class_count, options));
  const bool fits = set.test.steps == set.train.steps && set.test.channels == set.train.channels;
  if (!fits || set.train.samples() == 0 || set.test.samples() == 0) {
    return Damaged(
        file, absl::StrCat("/train/x has ", set.train.samples(), " samples of ", set.train.steps, " x ",
                           set.train.channels, ", and /test/x ", set.test.samples(), " of ", set.test.steps,
                           " x ", set.test.channels, ": expected samples of one shape in both"));
  }
  return set;
}

absl::StatusOr<std::string> PreparedKey(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const File file, OpenPrepared(path));
  return OrDamage(TextAttribute(file, "/", "key"));
}

}  // namespace plait::data
