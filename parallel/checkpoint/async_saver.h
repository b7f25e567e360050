// Saves in the background: tensors are copied, and a thread writes the copy while training continues.
//
//   AsyncSaver saver(world, "run", {.keep_last = 3});
//   for (step ...) {
//     ...
//     // Every step, or every few steps.
//     PLAIT_ASSIGN_OR_RETURN(const std::optional<SaveReport> saved, saver.Poll());
//     if (decision.save) PLAIT_RETURN_IF_ERROR(saver.Start(step, pieces, state));
//   }
//   PLAIT_ASSIGN_OR_RETURN(const std::optional<SaveReport> last, saver.Finish());
//
// Start() blocks training for the copy, a few messages and the layout of the file (no values); afterwards the
// tensors may change. The thread neither uses HDF5 nor communicates. The first Poll() or Finish() after all ranks'
// threads are done writes the index and renames the folder. One save at a time.
//
// The copy is kept for the next save: host memory of the size of this rank's pieces.
#ifndef PLAIT_PARALLEL_CHECKPOINT_ASYNC_SAVER_H_
#define PLAIT_PARALLEL_CHECKPOINT_ASYNC_SAVER_H_

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "comm/communicator.h"
#include "parallel/checkpoint/save.h"
#include "parallel/checkpoint/save_task.h"

namespace plait::parallel {

class AsyncSaver {
 public:
  // `comm` is used only during the calls below, by the calling thread.
  AsyncSaver(comm::Communicator comm, std::string root, const SaveOptions& options);
  // Joins the thread; never communicates. A save that neither Poll() nor Finish() has completed stays partial and is
  // removed by the next one.
  ~AsyncSaver() = default;
  AsyncSaver(const AsyncSaver&) = delete;
  AsyncSaver& operator=(const AsyncSaver&) = delete;

  // Collective, with the same result on all ranks; errors as SaveCheckpoint's. Completes a save still in flight
  // first; if that one fails, returns its error and starts nothing.
  absl::Status Start(std::int64_t step, absl::Span<const TensorPiece> pieces, const CheckpointState& state);

  // True from Start() until the Poll() or Finish() that completes the save; the same on all ranks.
  bool in_flight() const { return task_.has_value(); }

  // Collective. Completes the save if every rank's thread is done, and returns its report or its error; nullopt
  // otherwise. One all-reduce of 8 bytes while a save is in flight, no communication otherwise.
  absl::StatusOr<std::optional<SaveReport>> Poll();
  // Collective. As Poll(), but waits for the threads. nullopt if no save is in flight.
  absl::StatusOr<std::optional<SaveReport>> Finish();
  // Seconds that the last completed save took this rank, without the time between the end of its thread and the call
  // that completed the save.
  double seconds() const { return seconds_; }

 private:
  struct Written {
    absl::Status status;
    std::chrono::steady_clock::time_point end;
  };
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };

  std::vector<const void*> Copy(absl::Span<const TensorPiece> pieces, const SaveTask& task);
  void MakeRoom(std::size_t bytes);

  comm::Communicator comm_;
  std::string root_;
  SaveOptions options_;
  std::unique_ptr<char[], Free> copy_;
  std::size_t copy_bytes_ = 0;
  std::optional<SaveTask> task_;
  std::chrono::steady_clock::time_point begin_;
  double seconds_ = 0;
  std::future<Written> writing_;  // the last member: joins before what the thread uses is destroyed
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_ASYNC_SAVER_H_
