#include "tools/gru_training/console.h"

#include <iostream>

namespace plait::gru_training {
Console::Console(bool speaks) : speaks_(speaks), terminal_(base::DetectTerminal(2)) {}

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
