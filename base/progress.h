// A progress bar with the remaining time on a terminal; occasional plain lines where output goes to a file.
//
//   Progress progress(std::cout, DetectTerminal(1), {.label = "epoch 1", .total = batches});
//   for (int i = 0; i < batches; ++i) {
//     ...
//     progress.Update(i + 1);
//     if (...) progress.Print(line);       // a line that stays, above the bar
//   }
//   progress.Finish();                     // or the destructor: the bar disappears
//
// On a terminal:   epoch 1 [=======>            ]  38% 0:12 left
// In a file:       epoch 1: 40% (30 of 75), 0:12 left            at every tenth of the way
//
// If the total is unknown, the terminal shows the elapsed time, and a file gets nothing:
//
//                  preparing 0:12
//
// The line never wraps, down to 20 columns: first the bar is shortened or dropped, then the label. Update() and
// Redraw() draw at most every `redraw_seconds`, but the full bar at once; call Redraw() between updates to keep the
// clock running. Each drawing ends in a carriage return, so that line-buffering launchers show it at once, and lines
// written by others (WriteError) overwrite it. Use it on one rank only. Not thread-safe.
#ifndef PLAIT_BASE_PROGRESS_H_
#define PLAIT_BASE_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "base/terminal.h"

namespace plait::base {

struct ProgressOptions {
  std::string label = "";
  std::int64_t total = 0;         // 0: unknown
  std::int64_t done = 0;          // at the start, for a resumed run
  int plain_lines = 10;           // number of lines in a file; 0: none
  double plain_seconds = 0;       // minimum time before the first of them, and between two
  double redraw_seconds = 0.1;    // minimum time between two drawings of the bar
  double draw_after_seconds = 0;  // nothing is drawn before
  // Monotonic clock in seconds; tests replace it.
  std::function<double()> now_seconds = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
};

// "0:07", "12:30", "3:05:00"; "-:--" if `seconds` is negative, NaN or more than ten days.
std::string ClockTime(double seconds);

class Progress {
 public:
  Progress(std::ostream& out, const Terminal& terminal, ProgressOptions options);
  ~Progress() { Finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void SetLabel(const std::string& label) { options_.label = label; }
  // `done` of `total` units are done; clamped to `total`.
  void Update(std::int64_t done);
  // Draws the bar with the current time.
  void Redraw();
  // Writes `line` and a newline, and draws the bar again below it.
  void Print(const std::string& line);
  // Removes the bar until it is drawn again.
  void Erase();
  // Removes the bar for good; Print still works.
  void Finish();

 private:
  double SecondsLeft() const;
  std::string Numbers(double fraction) const;
  std::string Bar() const;
  void Draw();
  void PrintPlain(std::int64_t before);

  std::ostream& out_;
  Terminal terminal_;
  ProgressOptions options_;
  std::int64_t done_;
  double start_seconds_, updated_seconds_, drawn_seconds_, printed_seconds_;
  bool visible_ = false;
  bool finished_ = false;
};

}  // namespace plait::base

#endif  // PLAIT_BASE_PROGRESS_H_
