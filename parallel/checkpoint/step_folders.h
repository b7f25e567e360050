// The folder that holds a run's checkpoints, and which of them count.
//
//   run/step-000001000/       complete: index.h5 and the files of all ranks
//   run/step-000002000.partial/   being written, or left by a job that was killed; never read
//   run/latest                text: "step-000001000"
//
// A checkpoint is written under the second name and renamed to the first at the end, so that a folder of the
// first kind is complete. Local but for what takes a communicator; while ranks save, only rank 0 changes names. One job at
// a time.
#ifndef PLAIT_PARALLEL_CHECKPOINT_STEP_FOLDERS_H_
#define PLAIT_PARALLEL_CHECKPOINT_STEP_FOLDERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/communicator.h"

namespace plait::parallel {

// `root` itself where it is a checkpoint; else the newest in it whose index can be read and whose files are
// all there: the one that `latest` names, else that of the largest step. NOT_FOUND if `root` holds none, or
// does not exist; DATA_LOSS if it holds checkpoints of which none can be opened, saying what is wrong with
// the newest.
absl::StatusOr<std::string> FindLatestCheckpoint(const std::string& root);
// Collective: what rank 0 finds.
absl::StatusOr<std::string> FindLatestCheckpoint(const comm::Communicator& comm, const std::string& root);

// "ROOT/step-000001000" and the same with ".partial".
std::string StepFolder(const std::string& root, std::int64_t step);
std::string PartialFolder(const std::string& root, std::int64_t step);

// Steps with a folder that has an index, ascending.
std::vector<std::int64_t> CompleteSteps(const std::string& root);

// Prepares `root` for a save: makes the folder and removes what killed jobs left in it. RESOURCE_EXHAUSTED if
// the disk has no room for `bytes`.
absl::Status MakeReady(const std::string& root, std::int64_t bytes);
void RemovePartialFolder(const std::string& root, std::int64_t step);

// Renames the partial folder to its final name; on the disk when it returns. Replaces an older checkpoint of
// that step atomically, which is partial then.
absl::Status PublishFolder(const std::string& root, std::int64_t step);
absl::Status WriteLatest(const std::string& root, std::int64_t step);

// Complete are then the `keep` newest checkpoints up to and including `step`, and those of later steps (of
// another run that had been resumed from an earlier one); 0: all. The others are partial, on the disk too.
void RetireOlder(const std::string& root, std::int64_t step, int keep);
// Collective. Removes partial folders, each rank the files of its own number: to forget a file takes as long as to fill its
// pages. What cannot be removed is left to the next save.
void RemovePartials(const comm::Communicator& comm, const std::string& root);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_STEP_FOLDERS_H_
