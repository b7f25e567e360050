#include "data/har/prepare.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "data/har/recordings.h"
#include "data/har/synthetic.h"
#include "data/har/text.h"
#include "data/hdf5/atomic_file.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;

constexpr char kRecordingsFile[] = "hapt_recordings.bin";
constexpr char kDerivedFile[] = "har_from_recordings.h5";

// Exclusive for as long as it lives; the lock goes with the process, however that ends.
class FolderLock {
 public:
  static absl::StatusOr<FolderLock> Take(const std::string& folder) {
    const std::string path = folder + "/.lock";
    const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0)
      return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cache folder cannot be used"));
    // A file system without locks leaves the writes atomic all the same; only work may be done twice.
    while (flock(descriptor, LOCK_EX) != 0 && errno == EINTR) {
    }
    return FolderLock(descriptor);
  }
  FolderLock(FolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock() {
    if (descriptor_ >= 0) close(descriptor_);
  }

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

// One way to get the data: the file that keeps it, what names the input, and how to make it.
struct Source {
  std::string path;
  std::string key;
  std::function<absl::StatusOr<SequenceSet>()> make;
};

// Names, sizes and times of change: cheap, and different when a file was exchanged.
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

std::uint32_t Digest(const std::string& text) {
  return crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size());
}

absl::StatusOr<Source> TextSource(const std::string& data_dir, const std::string& cache) {
  PLAIT_ASSIGN_OR_RETURN(const std::string folder, FindHarFolder(data_dir));
  const std::string name = fs::weakly_canonical(folder).string();
  return Source{absl::StrFormat("%s/har_text_%08x.h5", cache, Digest(name)), TextKey(folder),
                [folder] { return ReadHarText(folder); }};
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

// Whether the prepared file can be used as it is; why not goes into the notes.
bool IsUsable(const Source& source, std::vector<std::string>& notes) {
  if (!fs::exists(source.path)) return false;
  const absl::StatusOr<std::string> key = PreparedKey(source.path);
  absl::Status status = key.status();
  if (key.ok() && *key == source.key) status = ReadPrepared(source.path, {}).status();
  if (!status.ok()) {
    notes.push_back(absl::StrCat(status.message(), ": made anew"));
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

std::string DefaultCacheFolder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return absl::StrCat(cache, "/plait/data");
  const char* home = std::getenv("HOME");
  return absl::StrCat(home == nullptr ? "/tmp" : home, "/.cache/plait/data");
}

absl::StatusOr<PreparedHar> PrepareHar(const HarOptions& options) {
  if (!options.data_dir.empty() && options.synthetic) {
    return absl::InvalidArgumentError("a data folder and synthetic data are both asked for: choose one");
  }
  if (absl::EndsWith(options.data_dir, ".h5")) {
    PLAIT_RETURN_IF_ERROR(ReadPrepared(options.data_dir, {}));
    return PreparedHar{options.data_dir, {}};
  }
  const std::string cache = options.cache_dir.empty() ? DefaultCacheFolder() : options.cache_dir;
  PLAIT_RETURN_IF_ERROR(MakeFolders(cache));
  PLAIT_ASSIGN_OR_RETURN(const FolderLock lock, FolderLock::Take(cache));
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
