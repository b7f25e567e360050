// Terminal detection: width, colours, or a plain file.
#ifndef PLAIT_BASE_TERMINAL_H_
#define PLAIT_BASE_TERMINAL_H_

#include <string>

namespace plait::base {

struct Terminal {
  bool interactive = false;  // lines can be overwritten
  bool colour = false;
  int columns = 80;
};

// Describes the terminal behind a file descriptor, usually 1 or 2. A file, a pipe, or TERM unset or "dumb" is not
// interactive; NO_COLOR, if set and not empty, turns colours off (no-color.org). The width is the window's, else
// COLUMNS, else 80.
//
// Launchers give ranks pseudo-terminals even if their own output is a file. In a process that a launcher started, the
// answer therefore comes from PLAIT_TERMINAL, see TellRanksOfTerminal(); without it the rank has no terminal.
Terminal DetectTerminal(int file_descriptor);

// Call before starting ranks: stores what this process's descriptors 1 and 2 can show in PLAIT_TERMINAL, in the
// environment that the ranks inherit.
void TellRanksOfTerminal();

// Writes `line` and a newline to standard error in one write(2), so that lines of several processes do not interleave.
// Erases a progress bar on that line. Thread-safe.
void WriteError(const std::string& line);
// The bytes that WriteError() writes.
std::string ErrorText(const std::string& line);

}  // namespace plait::base

#endif  // PLAIT_BASE_TERMINAL_H_
