// Watches the start and the end of a job, while there is no watchdog: a thread that ends this process, with a line that
// names rank, host and step, when a step takes too long. Private to comm.
//
//   StepWatch watch(rank, /*timeout_seconds=*/120);
//   watch.Enter("MPI_Init_thread");
//   MPI_Init_thread(...);
//   watch.Enter("roll call");
//   ...
// Its destructor ends the watch.
#ifndef PLAIT_COMM_STEP_WATCH_H_
#define PLAIT_COMM_STEP_WATCH_H_

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace plait::comm {

class StepWatch {
 public:
  StepWatch(int rank, double timeout_seconds);
  ~StepWatch();
  StepWatch(const StepWatch&) = delete;
  StepWatch& operator=(const StepWatch&) = delete;

  // The step that begins now may take timeout_seconds. Under tools/launch the rank's agent is told of it.
  void Enter(const std::string& step);

 private:
  void Watch();

  const int rank_;
  const double timeout_seconds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string step_ = "start";
  int steps_ = 0;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_STEP_WATCH_H_
