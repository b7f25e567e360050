// Lines on standard output, and on a terminal what the program does and how long it will take.
//
//   Console console(comm.rank() == 0);
//   console.StartBar("preparing");            // nobody knows how long
//   console.StartBar("epoch 1 of 3", samples, /*done=*/0);
//   console.Update(64);
//   console.Print("Train Epoch: ...");        // above the bar
//   console.StartBar("evaluation", 20);       // takes the place of the one before until it is stopped
//   console.StopBar();
//   console.StopBar();
//   console.StopBar();
//
// Everything between StartBar and StopBar that takes more than a second is shown, with a time that goes on while the
// program is busy: a thread draws it. The bar is where the lines are, so that launchers, which pass on each stream by
// itself, keep their order; on standard error if only that is a terminal (base/terminal.h). In a file there is a
// plain line every tenth of the way, at least ten seconds apart.
//
// Local; ranks other than the one that prints stay silent. Print is safe from any thread. While there is a
// bar all lines to the terminal go through Print, or base::WriteError.
#ifndef PLAIT_TOOLS_TRAINING_CONSOLE_H_
#define PLAIT_TOOLS_TRAINING_CONSOLE_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "base/progress.h"

namespace plait::training {

class Console {
 public:
  explicit Console(bool prints);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // `text` and a newline, at once.
  void Print(const std::string& text);

  // `total` 0: not known. `done`: before the start, as in a run that goes on.
  void StartBar(const std::string& label, std::int64_t total = 0, std::int64_t done = 0);
  void SetLabel(const std::string& label);
  void Update(std::int64_t done);
  void StopBar();
  // The present bar, if there is one, ends, and one of unknown length takes its place.
  void ReplaceBar(const std::string& label);

 private:
  void DrawOn();

  bool prints_;
  base::Terminal terminal_;
  std::ostream& bar_stream_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<base::Progress>> bars_;  // the last one is drawn
  bool ends_ = false;
  std::condition_variable ended_;
  std::thread drawer_;  // on a terminal
};

// A bar while it lives.
class BarScope {
 public:
  BarScope(Console& console, const std::string& label, std::int64_t total = 0) : console_(console) {
    console.StartBar(label, total);
  }
  ~BarScope() { console_.StopBar(); }
  BarScope(const BarScope&) = delete;
  BarScope& operator=(const BarScope&) = delete;

 private:
  Console& console_;
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_CONSOLE_H_
