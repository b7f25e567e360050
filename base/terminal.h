// What the output can show: a terminal of some width, colours, or a plain file.
#ifndef PLAIT_BASE_TERMINAL_H_
#define PLAIT_BASE_TERMINAL_H_

#include <string>

namespace plait::base {

struct Terminal {
  bool interactive = false;  // lines can be overwritten
  bool colour = false;
  int columns = 80;
};

// Of a file descriptor, usually 1 or 2. A file, a pipe or TERM=dumb is not interactive; NO_COLOR, when set
// and not empty, turns colours off (no-color.org). The width is the window's, else COLUMNS, else 80.
//
// Launchers give ranks pseudo-terminals, whatever there is at their own end. A rank therefore has a terminal
// only if the program that started it said so by TellRanksOfTerminal.
Terminal DetectTerminal(int file_descriptor);

// Before ranks are started: notes in the environment, as PLAIT_TERMINAL, what this process's descriptors 1
// and 2 can show.
void TellRanksOfTerminal();

// A line on standard error, in one write, so that lines of several processes do not mix; what is left of a progress bar in
// its place goes. Safe from any thread.
void WriteError(const std::string& line);
// What it writes.
std::string ErrorText(const std::string& line);

}  // namespace plait::base

#endif  // PLAIT_BASE_TERMINAL_H_
