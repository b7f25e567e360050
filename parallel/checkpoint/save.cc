#include "parallel/checkpoint/save.h"

#include <vector>

#include "base/status_macros.h"
#include "parallel/checkpoint/save_task.h"

namespace plait::parallel {

absl::StatusOr<SaveReport> SaveCheckpoint(const comm::Communicator& comm, const std::string& root,
                                          std::int64_t step, absl::Span<const TensorPiece> pieces,
                                          const CheckpointState& state, const SaveOptions& options) {
  PLAIT_ASSIGN_OR_RETURN(SaveTask task, SaveTask::Prepare(comm, root, step, pieces, state, options));
  std::vector<const void*> values;
  for (const LayoutPiece& piece : task.own_pieces()) values.push_back(pieces[piece.offered].data);
  return task.Commit(task.WriteValues(values));
}

}  // namespace plait::parallel
