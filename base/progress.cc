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
      done_(options_.done),
      start_seconds_(options_.now_seconds()),
      updated_seconds_(start_seconds_),
      drawn_seconds_(-std::numeric_limits<double>::infinity()),
      printed_seconds_(start_seconds_) {
  PLAIT_CHECK(options_.total >= 0) << "a progress bar of " << options_.total << " units";
}

// After the last update, less what has passed since.
double Progress::SecondsLeft() const {
  if (done_ <= options_.done) return -1;
  const double share =
      static_cast<double>(options_.total - done_) / static_cast<double>(done_ - options_.done);
  const double since = options_.now_seconds() - updated_seconds_;
  return std::max(0.0, (updated_seconds_ - start_seconds_) * share - since);
}

std::string Progress::Numbers(double fraction) const {
  const std::string so_far = ClockTime(options_.now_seconds() - start_seconds_);
  if (options_.total == 0) return " " + so_far;
  const double left = SecondsLeft();
  return absl::StrFormat(" %3d%% %s", static_cast<int>(100 * fraction),
                         left < 0 ? so_far + " so far" : ClockTime(left) + " left");
}

std::string Progress::Bar() const {
  const double fraction =
      options_.total == 0 ? 0 : static_cast<double>(done_) / static_cast<double>(options_.total);
  const std::string numbers = Numbers(fraction);
  // The last column stays free: some terminals wrap when it is written.
  const int room = std::max(terminal_.columns, kNarrowestTerminal) - 1 - static_cast<int>(numbers.size());
  std::string label = options_.label.empty() ? "" : options_.label + " ";
  const int for_bar = std::min(room - static_cast<int>(label.size()), kWidestBar);
  if (options_.total > 0 && for_bar >= kNarrowestBar) {
    return absl::StrCat(label, DrawnBar(fraction, for_bar), numbers);
  }
  return absl::StrCat(options_.label.substr(0, static_cast<std::size_t>(std::max(room, 0))), numbers);
}

void Progress::Draw() {
  const std::string bar = Bar();
  out_ << "\r\033[K" + (terminal_.colour ? "\033[36m" + bar + "\033[0m" : bar) + "\r" << std::flush;
  drawn_seconds_ = options_.now_seconds();
  visible_ = true;
}

void Progress::Erase() {
  if (visible_) out_ << "\r\033[K\r" << std::flush;
  visible_ = false;
}

void Progress::PrintPlain(std::int64_t before) {
  if (options_.plain_lines == 0 || options_.total == 0) return;
  const auto part = [this](std::int64_t done) { return done * options_.plain_lines / options_.total; };
  const double now = options_.now_seconds();
  if (part(done_) == part(before) || now - printed_seconds_ < options_.plain_seconds) return;
  printed_seconds_ = now;
  out_ << absl::StrFormat("%s: %d%% (%d of %d), %s left\n", options_.label, 100 * done_ / options_.total,
                          done_, options_.total, ClockTime(SecondsLeft()))
       << std::flush;
}

void Progress::Update(std::int64_t done) {
  const std::int64_t before = done_;
  done_ = std::min(done, options_.total);
  if (done_ != before) updated_seconds_ = options_.now_seconds();
  if (finished_) return;
  if (!terminal_.interactive) {
    PrintPlain(before);
  } else if (visible_ && done_ == options_.total) {
    Draw();
  } else {
    Redraw();
  }
}

void Progress::Redraw() {
  const double now = options_.now_seconds();
  if (finished_ || !terminal_.interactive || now - drawn_seconds_ < options_.redraw_seconds) return;
  if (now - start_seconds_ >= options_.draw_after_seconds) Draw();
}

void Progress::Print(const std::string& line) {
  const bool again = visible_;
  Erase();
  out_ << line << "\n" << std::flush;
  if (again) Draw();
}

void Progress::Finish() {
  Erase();
  finished_ = true;
}

}  // namespace plait::base
