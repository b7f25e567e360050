// The MPI requests of one operation, their scratch memory, and the steps that follow them. An operation with several
// stages posts the next requests when the previous ones are complete; it advances only in Test and Wait, its own or
// those of any other operation of the session (comm/mpi/progress.h).
//
// No receive is posted before it is known that the message fits: if a longer message arrives, Open MPI 4.1 writes past
// the end of the receive buffer before it reports the error.
#ifndef PLAIT_COMM_MPI_MPI_WORK_H_
#define PLAIT_COMM_MPI_MPI_WORK_H_

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "comm/backend.h"
#include "comm/mpi/progress.h"

namespace plait::comm {

class MpiWork : public PendingWork, public Progress::Task {
 public:
  explicit MpiWork(std::shared_ptr<Progress> progress) : progress_(std::move(progress)) {}
  ~MpiWork() override { progress_->Remove(this); }

  // For an MPI_I... call to fill in. Valid until the next call.
  MPI_Request* AddRequest() { return &requests_.emplace_back(MPI_REQUEST_NULL); }
  // The same for a request that only the end of the operation waits for, not the next stage: a send, which the receiver
  // may match later.
  MPI_Request* AddLateRequest() { return &late_requests_.emplace_back(MPI_REQUEST_NULL); }
  std::byte* AddScratch(std::int64_t bytes);
  // Adds a step that runs when all earlier requests are complete and may add new ones. Steps run in the order of
  // addition.
  using Step = std::function<void(MpiWork&)>;
  void AddStage(Step step) { stages_.push_back({nullptr, std::move(step)}); }
  // The same, but also waits until ready() is true, a condition on other operations; polled whenever the rank waits.
  void AddStageWhen(std::function<bool()> ready, Step step) {
    stages_.push_back({std::move(ready), std::move(step)});
  }
  // Runs the first stage, if it is ready and no requests precede it. From now on every wait of the session advances
  // this operation.
  void Start();
  // Adds a step that runs once at the end, in reverse order of addition: the outermost conversion was added first.
  void AtEnd(std::function<void()> step) { last_steps_.push_back(std::move(step)); }

  bool Test() override;
  void Wait() override;
  bool Advance() override;
  bool complete() const override { return complete_; }

 private:
  struct Stage {
    std::function<bool()> ready;  // null: always
    Step step;
  };
  void AddToProgress();
  void Finish();

  std::shared_ptr<Progress> progress_;
  bool in_progress_ = false;  // registered with progress_: any wait of the rank advances this
  bool complete_ = false;
  std::vector<MPI_Request> requests_, late_requests_;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;
  std::vector<Stage> stages_;
  std::size_t next_stage_ = 0;
  std::vector<std::function<void()>> last_steps_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_MPI_WORK_H_
