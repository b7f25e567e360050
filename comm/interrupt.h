// ^C in a process without a watchdog: one line, exit code 130.
#ifndef PLAIT_COMM_INTERRUPT_H_
#define PLAIT_COMM_INTERRUPT_H_

#include <signal.h>

namespace plait::comm {

inline constexpr int kInterruptedExitCode = 128 + SIGINT;

// "train_gpt: interrupted" on standard error.
void WriteInterrupted();
// The same of a program that saves its work first, and that another SIGINT ends it at once.
void WriteInterruptedAndStopping();

// While it lives SIGINT ends this process so, whatever it is doing; files are then as after a SIGKILL. A program that
// handles or ignores SIGINT itself goes on doing so. One at a time.
class InterruptHandler {
 public:
  InterruptHandler();
  ~InterruptHandler();
  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;

 private:
  struct sigaction before_ {};
  bool installed_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_INTERRUPT_H_
