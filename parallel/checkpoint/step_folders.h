// The folder that holds a run's checkpoints, and which of them count.
//
//   run/step-000001000/       complete: index.h5 and the files of all ranks
//   run/step-000002000.partial/   being written, or left by a job that was killed; never read
//   run/latest                text: "step-000001000"
//
// A checkpoint is written under the second name and gets the first by one rename, so that a folder of the
// first kind is whole. Local; while ranks save, rank 0 alone changes the folder. One job at a time.
#ifndef PLAIT_PARALLEL_CHECKPOINT_STEP_FOLDERS_H_
#define PLAIT_PARALLEL_CHECKPOINT_STEP_FOLDERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/communicator.h"

namespace plait::parallel {

// The newest complete checkpoint of `root`, whose files are all there: the one that `latest` names, else the
// one of the largest step. NOT_FOUND if there is none, or no such folder.
absl::StatusOr<std::string> FindLatestCheckpoint(const std::string& root);
// Collective: what rank 0 finds.
absl::StatusOr<std::string> FindLatestCheckpoint(const comm::Communicator& comm, const std::string& root);

// "ROOT/step-000001000" and the same with ".partial".
std::string StepFolder(const std::string& root, std::int64_t step);
std::string PartialFolder(const std::string& root, std::int64_t step);

// Steps with a folder that has an index, ascending.
std::vector<std::int64_t> CompleteSteps(const std::string& root);

// Makes `root` ready for a save: the folder is there, what killed jobs left in it is not. RESOURCE_EXHAUSTED
// if the disk has no room for `bytes`.
absl::Status MakeReady(const std::string& root, std::int64_t bytes);
void RemovePartialFolder(const std::string& root, std::int64_t step);

// Renames the partial folder to its final name, on the disk when it returns. An older checkpoint of that step
// is replaced in the same instant.
absl::Status PublishFolder(const std::string& root, std::int64_t step);
absl::Status WriteLatest(const std::string& root, std::int64_t step);

// Leaves the `keep` newest complete checkpoints up to `step`, itself among them, and those of later steps
// (another run's, gone on from an earlier one). keep = 0: all. What cannot be removed is left to the next
// call.
void RemoveOlder(const std::string& root, std::int64_t step, int keep);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_STEP_FOLDERS_H_
