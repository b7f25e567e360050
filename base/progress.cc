#include "base/progress.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"

namespace plait::base {
namespace {

constexpr int kWidestBar = 40;
constexpr int kNarrowestBar = 5;
constexpr int kNarrowestTerminal = 20;
constexpr int kTenDays = 10 * 24 * 3600;

// "[===>    ]" of `width` characters in all.
std::string DrawnBar(double fraction, int width) {
  const int inside = width - 2;
  const int filled = static_cast<int>(fraction * inside);
  std::string bar(static_cast<std::size_t>(inside), ' ');
  std::fill_n(bar.begin(), filled, '=');
  if (filled < inside) bar[static_cast<std::size_t>(filled)] = '>';
  return "[" + bar + "]";
}

}  // namespace

std::string ClockTime(double seconds) {
  if (!(seconds >= 0) || seconds > kTenDays) return "-:--";
  const long whole = std::lround(seconds);
  if (whole < 3600) return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
  return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
}

Progress::Progress(std::ostream& out, const Terminal& terminal, ProgressOptions options)
    : out_(out),
      terminal_(terminal),
      options_(std::move(options)),
      start_seconds_(options_.now_seconds()),
      drawn_seconds_(-std::numeric_limits<double>::infinity()) {
  PLAIT_CHECK(options_.total > 0) << "a progress bar of " << options_.total << " units";
}

double Progress::SecondsLeft() const {
  if (done_ == 0) return -1;
  const double passed = options_.now_seconds() - start_seconds_;
  return passed * static_cast<double>(options_.total - done_) / static_cast<double>(done_);
}

std::string Progress::Bar() const {
  const double fraction = static_cast<double>(done_) / static_cast<double>(options_.total);
  const std::string numbers =
      absl::StrFormat(" %3d%% %s left", static_cast<int>(100 * fraction), ClockTime(SecondsLeft()));
  // The last column stays free: some terminals wrap when it is written.
  const int room = std::max(terminal_.columns, kNarrowestTerminal) - 1 - static_cast<int>(numbers.size());
  std::string label = options_.label.empty() ? "" : options_.label + " ";
  const int for_bar = std::min(room - static_cast<int>(label.size()), kWidestBar);
  if (for_bar >= kNarrowestBar) return absl::StrCat(label, DrawnBar(fraction, for_bar), numbers);
  return absl::StrCat(options_.label.substr(0, static_cast<std::size_t>(std::max(room, 0))), numbers);
}

void Progress::Draw() {
  Erase();
  const std::string bar = Bar();
  out_ << (terminal_.colour ? "\033[36m" + bar + "\033[0m" : bar) << std::flush;
  drawn_seconds_ = options_.now_seconds();
  visible_ = true;
}

void Progress::Erase() {
  if (visible_) out_ << "\r\033[K";
  visible_ = false;
}

void Progress::PrintPlain(std::int64_t before) {
  const auto part = [this](std::int64_t done) { return done * options_.plain_lines / options_.total; };
  if (options_.plain_lines == 0 || part(done_) == part(before)) return;
  out_ << absl::StrFormat("%s: %d%% (%d of %d), %s left\n", options_.label, 100 * done_ / options_.total,
                          done_, options_.total, ClockTime(SecondsLeft()))
       << std::flush;
}

void Progress::Update(std::int64_t done) {
  const std::int64_t before = done_;
  done_ = std::min(done, options_.total);
  if (finished_) return;
  if (!terminal_.interactive) {
    PrintPlain(before);
  } else if (options_.now_seconds() - drawn_seconds_ >= options_.redraw_seconds || done_ == options_.total) {
    Draw();
  }
}

void Progress::Print(const std::string& line) {
  const bool again = visible_;
  Erase();
  out_ << line << "\n" << std::flush;
  if (again) Draw();
}

void Progress::Finish() {
  Erase();
  out_ << std::flush;
  finished_ = true;
}

}  // namespace plait::base
