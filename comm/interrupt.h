// ^C in a process without a watchdog: one line, exit code 130.
#ifndef PLAIT_COMM_INTERRUPT_H_
#define PLAIT_COMM_INTERRUPT_H_

#include <signal.h>

namespace plait::comm {

inline constexpr int kInterruptedExitCode = 128 + SIGINT;

// "train_gpt: interrupted" on standard error.
void WriteInterrupted();
// The same for a program that finishes its step and saves its state first; adds that another SIGINT ends it at once.
void WriteInterruptedAndStopping();

// While it lives, SIGINT prints WriteInterrupted()'s line and ends the process with kInterruptedExitCode, without
// running destructors or flushing files. No effect if the program already handles or ignores SIGINT. At most one at a
// time.
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
