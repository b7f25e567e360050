// The folder that holds a run's checkpoints, and which of them are complete.
//
//   run/step-000001000/       complete: index.h5 and the files of all ranks
//   run/step-000002000.partial/   being written, or left by a job that was killed; never read
//   run/latest                text: "step-000001000"
//
// A checkpoint is written under the second name and renamed to the first at the end, so that a folder without
// ".partial" is complete. Functions without a communicator are local; during a save only rank 0 renames. One job at a
// time.
#ifndef PLAIT_PARALLEL_CHECKPOINT_STEP_FOLDERS_H_
#define PLAIT_PARALLEL_CHECKPOINT_STEP_FOLDERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/communicator.h"

namespace plait::parallel {

// Returns `root` itself if it is a checkpoint; else the first that Checkpoint::Open accepts: the one that `latest`
// names, then smaller steps from the largest down, then larger ones, which may be of a run that has since been resumed
// from an earlier step. `*skipped`, where given, is then the error of the first that was not accepted, or OK. NOT_FOUND
// if `root` does not exist or has no checkpoint; DATA_LOSS, with the error of the first, if none of its checkpoints can
// be opened; errors of `root` and `latest` that cannot be read.
absl::StatusOr<std::string> FindLatestCheckpoint(const std::string& root, absl::Status* skipped = nullptr);
// Collective. Returns rank 0's result on all ranks; `*skipped` is set on rank 0.
absl::StatusOr<std::string> FindLatestCheckpoint(const comm::Communicator& comm, const std::string& root,
                                                 absl::Status* skipped = nullptr);

// "ROOT/step-000001000" and the same with ".partial".
std::string StepFolder(const std::string& root, std::int64_t step);
std::string PartialFolder(const std::string& root, std::int64_t step);

// The steps of all complete checkpoints, ascending; none if `root` does not exist. An error if it cannot be listed to
// its end.
absl::StatusOr<std::vector<std::int64_t>> CompleteSteps(const std::string& root);

// Prepares `root` for a save: creates it and removes partial folders that killed jobs have left. RESOURCE_EXHAUSTED
// if fewer than `bytes` are free; errors of a folder that cannot be listed.
absl::Status MakeReady(const std::string& root, std::int64_t bytes);
void RemovePartialFolder(const std::string& root, std::int64_t step);

// Renames the partial folder to its final name and fsyncs `root`. An existing checkpoint of the same step, or a symbolic
// link to one, is replaced, atomically where the file system can exchange the names of two folders.
absl::Status PublishFolder(const std::string& root, std::int64_t step);
absl::Status WriteLatest(const std::string& root, std::int64_t step);

// Complete steps larger than `step`, ascending; none if `root` cannot be listed.
std::vector<std::int64_t> StepsAfter(const std::string& root, std::int64_t step);

// Keeps `keep` checkpoints up to and including `step`, and all of later steps (left by a run that was since resumed from
// an earlier step); 0, or if `root` cannot be listed: keeps all. The `superseded` ones are the first to go, then the
// oldest. They are renamed to ".partial", and `root` is fsynced.
void RetireOlder(const std::string& root, std::int64_t step, int keep,
                 const std::vector<std::int64_t>& superseded = {});
// Collective over `comm`. Removes partial folders; each rank unlinks its own files, because unlinking a large file
// takes about as long as writing its pages. Of a symbolic link only the link is removed. What cannot be removed is left
// for the next save.
void RemovePartials(const comm::Communicator& comm, const std::string& root);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_STEP_FOLDERS_H_
