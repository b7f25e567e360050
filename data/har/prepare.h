// Human-activity data ready for training: found, prepared once, kept in a cache, opened by all ranks.
//
//   // rank 0 only (or every rank: a lock lets one prepare while the others wait):
//   PLAIT_ASSIGN_OR_RETURN(PreparedHar har, PrepareHar({.data_dir = flag}));
//   // every rank, after the caller's barrier and a broadcast of har.path:
//   PLAIT_ASSIGN_OR_RETURN(SequenceSet set, ReadPrepared(har.path, {.fraction = 0.5}));    // data/prepared.h
//
//   // one process:
//   PLAIT_ASSIGN_OR_RETURN(SequenceSet set, OpenHar({}, {}));
//   std::cout << "Data: " << set.description() << "\n";       // says "synthetic" where it is
//
// Sources, in this order:
//   1. data_dir, if given: a folder in the UCI HAR text layout, or a prepared .h5 file. Nothing else is tried;
//   2. the raw recordings in the cache folder (from data/har/fetch_recordings.py), or the file prepared from them;
//   3. a file prepared from recordings that have been removed since;
//   4. synthetic data.
#ifndef PLAIT_DATA_HAR_PREPARE_H_
#define PLAIT_DATA_HAR_PREPARE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/prepared.h"
#include "data/sequence_set.h"

namespace plait::data {

struct HarOptions {
  std::string data_dir = "";
  std::string cache_dir =
      "";                  // empty: base::CacheFolder() + "/data", where fetch_recordings.py puts its file
  bool synthetic = false;  // always use synthetic data; not with data_dir
};

struct PreparedHar {
  std::string path;  // of the prepared HDF5 file
  std::vector<std::string>
      notes;  // what was done, one line each: "Prepared ... in 1.2 s", "... damaged: prepared again"
};

// Reuses a prepared file if its key matches the input (paths, sizes, modification times) and its checksums are correct;
// otherwise prepares it atomically, under a file lock in the cache folder. A damaged file in the cache is replaced,
// with a note; one given as data_dir is an error. Errors of the readers; InvalidArgument if data_dir and synthetic are
// both given; PermissionDenied and ResourceExhausted for the cache folder. Local.
absl::StatusOr<PreparedHar> PrepareHar(const HarOptions& options);

// PrepareHar, then ReadPrepared.
absl::StatusOr<SequenceSet> OpenHar(const HarOptions& options, const ReadPreparedOptions& read);

}  // namespace plait::data

#endif  // PLAIT_DATA_HAR_PREPARE_H_
