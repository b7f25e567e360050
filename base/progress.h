// A progress bar with the time left on a terminal; now and then a plain line in a file.
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
// Where the total is not known there is the time so far, and nothing in a file:
//
//                  preparing 0:12
//
// The bar never wraps, down to 20 columns: first the bar, then the label is shortened. It is drawn at most
// ten times a second; between updates Redraw counts the time. The cursor stays in front of the bar, and each drawing ends
// in a carriage return, so that whoever passes output on by lines shows it at once, and a line that comes another
// way (WriteError) takes its place. Give it to the one rank that speaks. Not thread-safe.
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
  std::int64_t total = 0;         // 0: not known
  std::int64_t done = 0;          // at the start, as in a run that goes on
  int plain_lines = 10;           // how many in a file; 0: none
  double plain_seconds = 0;       // least time from the start to the first of them, and between two
  double redraw_seconds = 0.1;    // least time between two drawings of the bar
  double draw_after_seconds = 0;  // what ends earlier is not drawn
  // Seconds since some start; a test gives its own.
  std::function<double()> now_seconds = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
};

// "0:07", "12:30", "3:05:00", and "-:--" for a negative or unknown time.
std::string ClockTime(double seconds);

class Progress {
 public:
  Progress(std::ostream& out, const Terminal& terminal, ProgressOptions options);
  ~Progress() { Finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void SetLabel(const std::string& label) { options_.label = label; }
  // `done` of `total` units are done; beyond total counts as total.
  void Update(std::int64_t done);
  // The same bar, some time later.
  void Redraw();
  // Writes `line` and a newline, and draws the bar again below it.
  void Print(const std::string& line);
  // Removes the bar until it is drawn again.
  void Erase();
  // Removes the bar. Nothing is drawn afterwards; Print still prints.
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
