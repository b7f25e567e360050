#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace plait::base {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int Columns(int file_descriptor) {
  winsize window{};
  if (ioctl(file_descriptor, TIOCGWINSZ, &window) == 0 && window.ws_col > 0) return window.ws_col;
  const int columns = std::atoi(Environment("COLUMNS").c_str());
  return columns > 0 ? columns : 80;
}

// Columns of descriptors 1 and 2 at the user's end, 0 for no terminal: "80,0".
constexpr char kTold[] = "PLAIT_TERMINAL";

bool IsInteractive(int file_descriptor) {
  const std::string kind = Environment("TERM");
  return isatty(file_descriptor) == 1 && !kind.empty() && kind != "dumb";
}

bool HasColour() { return Environment("NO_COLOR").empty(); }

Terminal ToldTerminal(int file_descriptor) {
  int columns[2] = {0, 0};
  std::sscanf(Environment(kTold).c_str(), "%d,%d", &columns[0], &columns[1]);
  const int own = file_descriptor == 1 || file_descriptor == 2 ? columns[file_descriptor - 1] : 0;
  if (own <= 0) return {.columns = Columns(-1)};
  return {.interactive = true, .colour = HasColour(), .columns = own};
}

bool IsRank() {
  // A step of one task may be a shell: srun --pty bash.
  const bool of_srun = !Environment("SLURM_STEP_ID").empty() && Environment("SLURM_STEP_NUM_TASKS") != "1";
  return !Environment(kTold).empty() || !Environment("OMPI_COMM_WORLD_RANK").empty() ||
         !Environment("PMI_RANK").empty() || of_srun;
}

}  // namespace

Terminal DetectTerminal(int file_descriptor) {
  if (IsRank()) return ToldTerminal(file_descriptor);
  const bool interactive = IsInteractive(file_descriptor);
  return {
      .interactive = interactive, .colour = interactive && HasColour(), .columns = Columns(file_descriptor)};
}

std::string ErrorText(const std::string& line) {
  return (DetectTerminal(2).interactive ? "\r\033[K" : "") + line + "\n";
}

void WriteError(const std::string& line) {
  const std::string text = ErrorText(line);
  // Nothing can be done when it fails.
  [[maybe_unused]] const ssize_t written = write(2, text.data(), text.size());
}

void TellRanksOfTerminal() {
  const auto columns = [](int file_descriptor) {
    const Terminal terminal = DetectTerminal(file_descriptor);
    return std::to_string(terminal.interactive ? terminal.columns : 0);
  };
  setenv(kTold, (columns(1) + "," + columns(2)).c_str(), /*overwrite=*/1);
}

}  // namespace plait::base
