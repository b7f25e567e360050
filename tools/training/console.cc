#include "tools/training/console.h"

#include <chrono>
#include <iostream>

namespace plait::training {
namespace {

constexpr std::chrono::milliseconds kBetweenDrawings(250);
constexpr double kSecondsUnseen = 1;
constexpr double kSecondsBetweenPlainLines = 10;

base::Terminal TerminalOfBar() {
  const base::Terminal output = base::DetectTerminal(1);
  return output.interactive ? output : base::DetectTerminal(2);
}

}  // namespace

Console::Console(bool prints)
    : prints_(prints),
      terminal_(TerminalOfBar()),
      bar_stream_(terminal_.interactive && !base::DetectTerminal(1).interactive ? std::cerr : std::cout) {
  if (prints_ && terminal_.interactive) drawer_ = std::thread([this] { DrawOn(); });
}

Console::~Console() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ended_.notify_one();
  if (drawer_.joinable()) drawer_.join();
}

void Console::DrawOn() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kBetweenDrawings, [this] { return ends_; })) {
    if (!bars_.empty()) bars_.back()->Redraw();
  }
}

void Console::Print(const std::string& text) {
  if (!prints_) return;
  const std::lock_guard lock(mutex_);
  if (!bars_.empty()) bars_.back()->Erase();
  std::cout << text << "\n" << std::flush;
}

void Console::StartBar(const std::string& label, std::int64_t total, std::int64_t done) {
  if (!prints_) return;
  const std::lock_guard lock(mutex_);
  if (!bars_.empty()) bars_.back()->Erase();
  bars_.push_back(
      std::make_unique<base::Progress>(bar_stream_, terminal_,
                                       base::ProgressOptions{.label = label,
                                                             .total = total,
                                                             .done = done,
                                                             .plain_seconds = kSecondsBetweenPlainLines,
                                                             .draw_after_seconds = kSecondsUnseen}));
}

void Console::SetLabel(const std::string& label) {
  const std::lock_guard lock(mutex_);
  if (!bars_.empty()) bars_.back()->SetLabel(label);
}

void Console::Update(std::int64_t done) {
  const std::lock_guard lock(mutex_);
  if (!bars_.empty()) bars_.back()->Update(done);
}

void Console::StopBar() {
  const std::lock_guard lock(mutex_);
  if (!bars_.empty()) bars_.pop_back();
}

void Console::ReplaceBar(const std::string& label) {
  StopBar();
  StartBar(label);
}

}  // namespace plait::training
