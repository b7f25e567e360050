#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

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

}  // namespace

Terminal DetectTerminal(int file_descriptor) {
  Terminal terminal;
  const std::string kind = Environment("TERM");
  terminal.interactive = isatty(file_descriptor) == 1 && !kind.empty() && kind != "dumb";
  terminal.colour = terminal.interactive && Environment("NO_COLOR").empty();
  terminal.columns = Columns(file_descriptor);
  return terminal;
}

}  // namespace plait::base
