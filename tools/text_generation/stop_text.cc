#include "tools/text_generation/stop_text.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace plait::text_generation {
namespace {

// Length of the incomplete UTF-8 character at the end of `text`; 0 if there is none.
std::size_t UnfinishedBytes(absl::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;  // goes on with one
    const std::size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

// Length of the longest suffix of `text` that is a proper prefix of `stop`.
std::size_t BegunBytes(absl::string_view text, absl::string_view stop) {
  std::size_t begun = std::min(text.size(), stop.size() - 1);
  while (!absl::EndsWith(text, stop.substr(0, begun))) --begun;
  return begun;
}

}  // namespace

std::size_t StopText::SureBytes() const {
  std::size_t held = 0;
  for (const std::string& stop : stops_) held = std::max(held, BegunBytes(held_, stop));
  const std::size_t sure = held_.size() - held;
  return sure - UnfinishedBytes(absl::string_view(held_).substr(0, sure));
}

std::string StopText::Add(absl::string_view bytes) {
  if (stopped_) return "";
  absl::StrAppend(&held_, bytes);
  std::size_t end = std::string::npos;
  for (const std::string& stop : stops_) end = std::min(end, held_.find(stop));
  stopped_ = end != std::string::npos;
  if (!stopped_) end = SureBytes();
  std::string sure = held_.substr(0, end);
  held_.erase(0, stopped_ ? std::string::npos : end);
  return sure;
}

std::string StopText::Rest() { return std::exchange(held_, ""); }

}  // namespace plait::text_generation
