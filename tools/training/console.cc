#include "tools/training/console.h"

#include <iostream>

namespace plait::training {

Console::Console(bool prints) : prints_(prints), terminal_(base::DetectTerminal(2)) {}

void Console::Print(const std::string& text) {
  if (!prints_) return;
  if (!bars_.empty()) std::cerr << "\r\x1b[K" << std::flush;
  std::cout << text << "\n" << std::flush;
}

void Console::StartBar(const std::string& label, std::int64_t total) {
  if (!prints_ || !terminal_.interactive) return;
  bars_.push_back(std::make_unique<base::Progress>(std::cerr, terminal_,
                                                   base::ProgressOptions{.label = label, .total = total}));
}

void Console::Update(std::int64_t done) {
  if (!bars_.empty()) bars_.back()->Update(done);
}

void Console::StopBar() {
  if (!bars_.empty()) bars_.pop_back();
}

}  // namespace plait::training
