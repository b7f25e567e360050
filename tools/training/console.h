// Lines on standard output, and nested progress bars.
//
//   Console console(comm.rank() == 0);
//   console.StartBar("preparing");            // of unknown length
//   console.StartBar("epoch 1 of 3", samples, /*done=*/0);
//   console.Update(64);
//   console.Print("Train Epoch: ...");        // above the bar
//   console.StartBar("evaluation", 20);       // shown in place of the previous bar until it is stopped
//   console.StopBar();
//   console.StopBar();
//   console.StopBar();
//
// A bar that lasts more than a second is shown; a thread redraws it while the program is busy. It is drawn on standard
// output, among the lines, because launchers forward each stream separately and would reorder them; on standard error
// if only that is a terminal (base/terminal.h). If neither is, a plain line is printed every tenth of the way, at least
// ten seconds apart.
//
// Local. Only the rank with `prints` writes. Print may be called from any thread. While a bar is shown, everything
// written to the terminal must go through Print or base::WriteError.
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

  // Writes `text` and a newline, and flushes.
  void Print(const std::string& text);

  // `total` 0: unknown. `done`: units done before the start, as in a resumed run.
  void StartBar(const std::string& label, std::int64_t total = 0, std::int64_t done = 0);
  void SetLabel(const std::string& label);
  void Update(std::int64_t done);
  void StopBar();
  // Replaces the current bar, if any, by one of unknown length.
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

// A bar for the lifetime of this object.
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
