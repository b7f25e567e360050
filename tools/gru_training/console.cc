#include "tools/gru_training/console.h"

#include <cstdlib>
#include <iostream>

#include "absl/strings/numbers.h"

namespace plait::gru_training {
namespace {

constexpr char kColumns[] = "PLAIT_TERMINAL_COLUMNS";

base::Terminal TerminalOfUser() {
  base::Terminal terminal = base::DetectTerminal(2);
  const char* told = std::getenv(kColumns);
  int columns = 0;
  if (told != nullptr && absl::SimpleAtoi(told, &columns)) {
    terminal.interactive = true;
    terminal.columns = columns;
  }
  return terminal;
}

}  // namespace

void TellRanksOfTerminal() {
  const base::Terminal terminal = base::DetectTerminal(2);
  if (terminal.interactive) setenv(kColumns, std::to_string(terminal.columns).c_str(), /*overwrite=*/1);
}

Console::Console(bool speaks) : speaks_(speaks), terminal_(TerminalOfUser()) {}

void Console::Print(const std::string& text) {
  if (!speaks_) return;
  if (bar_ != nullptr) std::cerr << "\r\x1b[K" << std::flush;
  std::cout << text << "\n" << std::flush;
}

void Console::StartBar(const std::string& label, std::int64_t total) {
  if (!speaks_ || !terminal_.interactive) return;
  bar_ = std::make_unique<base::Progress>(std::cerr, terminal_,
                                          base::ProgressOptions{.label = label, .total = total});
}

void Console::Update(std::int64_t done) {
  if (bar_ != nullptr) bar_->Update(done);
}

void Console::StopBar() { bar_.reset(); }

}  // namespace plait::gru_training
