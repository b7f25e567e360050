#include "data/har/prepare.h"

#include <filesystem>
#include <functional>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file_descriptor.h"
#include "base/status_macros.h"
#include "data/cache_folder.h"
#include "data/har/recordings.h"
#include "data/har/synthetic.h"
#include "data/har/text.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/checked_array.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;

constexpr char kRecordingsFile[] = "hapt_recordings.bin";
constexpr char kDerivedFile[] = "har_from_recordings.h5";

// A source of data: path of the prepared file, key of the input, and how to prepare it.
struct Source {
  std::string path;
  std::string key;
  std::function<absl::StatusOr<SequenceSet>()> make;
};

// Names, sizes and modification times: cheap, and different if a file is replaced.
std::string TextKey(const std::string& folder) {
  std::string key = absl::StrCat("text ", fs::weakly_canonical(folder).string());
  for (const std::string& file : HarTextFiles(folder)) {
    std::error_code error;
    const auto size = fs::file_size(file, error);
    if (error) continue;
    const auto changed = fs::last_write_time(file, error).time_since_epoch().count();
    absl::StrAppend(&key, " ", fs::path(file).filename().string(), ":", size, ":", changed);
  }
  return key;
}

absl::StatusOr<Source> TextSource(const std::string& data_dir, const std::string& cache) {
  PLAIT_ASSIGN_OR_RETURN(const std::string folder, FindHarFolder(data_dir));
  const std::string name = fs::weakly_canonical(folder).string();
  return Source{absl::StrFormat("%s/har_text_%08x.h5", cache, Crc32(name.data(), std::ssize(name))),
                TextKey(folder), [folder] { return ReadHarText(folder); }};
}

Source RecordingsSource(const std::string& cache) {
  const std::string path = absl::StrCat(cache, "/", kRecordingsFile);
  std::error_code ignored;
  const auto changed = fs::last_write_time(path, ignored).time_since_epoch().count();
  return Source{absl::StrCat(cache, "/", kDerivedFile),
                absl::StrCat("recordings ", fs::file_size(path, ignored), ":", changed),
                [path]() -> absl::StatusOr<SequenceSet> {
                  PLAIT_ASSIGN_OR_RETURN(const Recordings recordings, ReadRecordings(path));
                  return WindowsOf(recordings);
                }};
}

Source SyntheticSource(const std::string& cache) {
  constexpr std::int64_t kTrain = 2400, kTest = 600;
  constexpr std::uint64_t kSeed = 1;
  return Source{absl::StrCat(cache, "/har_synthetic.h5"), "synthetic 1",
                [] { return absl::StatusOr<SequenceSet>(SyntheticHar(kTrain, kTest, kSeed)); }};
}

// Whether the prepared file can be used as it is; adds a note if it is damaged.
bool IsUsable(const Source& source, std::vector<std::string>& notes) {
  if (!fs::exists(source.path)) return false;
  const absl::StatusOr<std::string> key = PreparedKey(source.path);
  absl::Status status = key.status();
  if (key.ok() && *key == source.key) status = ReadPrepared(source.path, {}).status();
  if (!status.ok()) {
    notes.push_back(absl::StrCat(status.message(), ": prepared again"));
    return false;
  }
  return *key == source.key;
}

absl::StatusOr<PreparedHar> UseOrMake(const Source& source) {
  PreparedHar prepared{source.path, {}};
  if (IsUsable(source, prepared.notes)) return prepared;
  const absl::Time begin = absl::Now();
  PLAIT_ASSIGN_OR_RETURN(const SequenceSet set, source.make());
  PLAIT_RETURN_IF_ERROR(WritePrepared(source.path, set, source.key));
  prepared.notes.push_back(
      absl::StrFormat("Prepared %d + %d sequences in %.1f s: %s, %s", set.train.samples(), set.test.samples(),
                      absl::ToDoubleSeconds(absl::Now() - begin), set.description(), source.path));
  return prepared;
}

absl::StatusOr<PreparedHar> FromCache(const std::string& cache) {
  const std::string derived = absl::StrCat(cache, "/", kDerivedFile);
  if (fs::exists(absl::StrCat(cache, "/", kRecordingsFile))) return UseOrMake(RecordingsSource(cache));
  PreparedHar prepared{derived, {}};
  if (fs::exists(derived)) {
    const absl::Status status = ReadPrepared(derived, {}).status();
    if (status.ok()) return prepared;
    prepared.notes.push_back(absl::StrCat(status.message(), ": not used"));
  }
  PLAIT_ASSIGN_OR_RETURN(PreparedHar stand_in, UseOrMake(SyntheticSource(cache)));
  stand_in.notes.insert(stand_in.notes.begin(), prepared.notes.begin(), prepared.notes.end());
  stand_in.notes.push_back(absl::StrCat("No recordings in ", cache,
                                        " (data/har/fetch_recordings.py gets them): synthetic stand-in"));
  return stand_in;
}

}  // namespace

absl::StatusOr<PreparedHar> PrepareHar(const HarOptions& options) {
  if (!options.data_dir.empty() && options.synthetic) {
    return absl::InvalidArgumentError("a data folder and synthetic data are both asked for: choose one");
  }
  if (absl::EndsWith(options.data_dir, ".h5")) {
    PLAIT_RETURN_IF_ERROR(ReadPrepared(options.data_dir, {}));
    return PreparedHar{options.data_dir, {}};
  }
  PLAIT_ASSIGN_OR_RETURN(const std::string cache, MadeCacheFolder(options.cache_dir));
  const absl::StatusOr<base::FileDescriptor> lock =
      base::FileDescriptor::Open(cache + "/.lock", base::FileDescriptor::Mode::kOpenOrCreate);
  PLAIT_RETURN_IF_ERROR(CacheError(lock.status(), options.cache_dir));
  // Without locks in the file system, writes are still atomic, only work may be done twice.
  lock->WaitForLock();
  if (options.synthetic) return UseOrMake(SyntheticSource(cache));
  if (options.data_dir.empty()) return FromCache(cache);
  PLAIT_ASSIGN_OR_RETURN(const Source source, TextSource(options.data_dir, cache));
  return UseOrMake(source);
}

absl::StatusOr<SequenceSet> OpenHar(const HarOptions& options, const ReadPreparedOptions& read) {
  PLAIT_ASSIGN_OR_RETURN(const PreparedHar prepared, PrepareHar(options));
  return ReadPrepared(prepared.path, read);
}

}  // namespace plait::data
