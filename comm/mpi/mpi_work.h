// The MPI requests of one operation, the scratch memory that they use, and what is left to do after them. An
// operation of several stages posts the next requests when the last ones are complete; it moves on in Test
// and Wait only.
#ifndef PLAIT_COMM_MPI_MPI_WORK_H_
#define PLAIT_COMM_MPI_MPI_WORK_H_

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "comm/backend.h"

namespace plait::comm {

class MpiWork : public PendingWork {
 public:
  explicit MpiWork(bool oversubscribed) : oversubscribed_(oversubscribed) {}

  // For an MPI_I... call to fill in. Valid until the next call.
  MPI_Request* AddRequest() { return &requests_.emplace_back(MPI_REQUEST_NULL); }
  // The latest request is a receive: exactly `count` elements of `type` from `peer`, or TransportError.
  void ExpectCount(int count, MPI_Datatype type, int peer);
  std::byte* AddScratch(std::int64_t bytes);
  // Runs when all requests so far are complete, and adds others. In order of addition; the first one at once
  // if StartStages is called.
  using Stage = std::function<void(MpiWork&)>;
  void AddStage(Stage stage) { stages_.push_back(std::move(stage)); }
  void StartStages() { RunStage(); }
  // Runs once, after the requests, in reverse order of addition: the outermost conversion was added first.
  void AtEnd(std::function<void()> step) { last_steps_.push_back(std::move(step)); }

  bool Test() override;
  void Wait() override;

 private:
  struct Expectation {
    std::size_t request;
    int count;
    MPI_Datatype type;
    int peer;
  };
  void RunStage();
  void CheckReceived(const std::vector<MPI_Status>& statuses) const;
  void Finish();

  bool oversubscribed_;
  bool complete_ = false;
  std::vector<MPI_Request> requests_;
  std::vector<Expectation> expectations_;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;
  std::vector<Stage> stages_;
  std::size_t next_stage_ = 0;
  std::vector<std::function<void()>> last_steps_;
};

// A message of `count` elements arrived as `status` says; throws TransportError if the sender sent fewer.
void CheckCount(const MPI_Status& status, int count, MPI_Datatype type, int peer);

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_MPI_WORK_H_
