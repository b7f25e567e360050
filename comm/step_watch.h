// Watches the start and the end of a job, while no watchdog runs: if a step takes too long, a thread ends this process
// with a line that names rank, host and step. Private to comm.
//
//   StepWatch watch(rank, /*timeout_seconds=*/120);
//   watch.Enter("MPI_Init_thread");
//   MPI_Init_thread(...);
//   watch.Enter("roll call");
//   ...
// The destructor ends the watch.
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

  // Begins a step, which may take timeout_seconds. Under //tools:launch the step is reported to the rank's agent.
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
