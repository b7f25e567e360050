// RankEvents as bytes: numbers as they lie in memory (all ranks run the same program), texts with their
// length.
#include <cstring>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "data/trace/chrome_trace.h"

namespace plait::data {
namespace {

constexpr std::uint64_t kMagic = 0x32435254544c50;  // "PLTTRC2"

template <typename T>
void Put(std::string& bytes, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void PutText(std::string& bytes, const std::string& text) {
  Put(bytes, static_cast<std::int64_t>(text.size()));
  bytes += text;
}

void PutTexts(std::string& bytes, const std::vector<std::string>& texts) {
  Put(bytes, static_cast<std::int64_t>(texts.size()));
  for (const std::string& text : texts) PutText(bytes, text);
}

// Takes values from the front; once something is missing, everything fails.
class Bytes {
 public:
  explicit Bytes(absl::string_view bytes) : rest_(bytes) {}
  bool ok() const { return ok_; }
  bool empty() const { return rest_.empty(); }

  template <typename T>
  T Take() {
    T value{};
    if (const char* at = Skip(sizeof(T))) std::memcpy(&value, at, sizeof(T));
    return value;
  }
  std::string TakeText() {
    const std::int64_t size = TakeCount(1);
    const char* at = Skip(size);
    return at == nullptr ? std::string() : std::string(at, size);
  }
  // A number of things that take at least `bytes` each.
  std::int64_t TakeCount(std::int64_t bytes) {
    const auto count = Take<std::int64_t>();
    ok_ = ok_ && count >= 0 && count <= static_cast<std::int64_t>(rest_.size()) / bytes;
    return ok_ ? count : 0;
  }
  std::vector<std::string> TakeTexts() {
    std::vector<std::string> texts(TakeCount(sizeof(std::int64_t)));
    for (std::string& text : texts) text = TakeText();
    return texts;
  }

 private:
  const char* Skip(std::size_t size) {
    ok_ = ok_ && rest_.size() >= size;
    if (!ok_) return nullptr;
    const char* at = rest_.data();
    rest_.remove_prefix(size);
    return at;
  }
  absl::string_view rest_;
  bool ok_ = true;
};

bool IndicesFit(const RankEvents& rank) {
  for (const TraceEvent& event : rank.events) {
    if (event.name < 0 || event.name >= static_cast<std::int64_t>(rank.names.size())) return false;
    if (event.track < 0 || event.track >= static_cast<std::int64_t>(rank.tracks.size())) return false;
  }
  return true;
}

}  // namespace

std::string ToBytes(const RankEvents& rank) {
  std::string bytes;
  bytes.reserve(4096 + rank.events.size() * sizeof(TraceEvent));
  Put(bytes, kMagic);
  Put(bytes, rank.rank);
  PutText(bytes, rank.host);
  for (int i : {0, 1}) {
    Put(bytes, rank.moments_seconds[i]);
    Put(bytes, rank.offsets_seconds[i]);
  }
  PutTexts(bytes, rank.names);
  PutTexts(bytes, rank.tracks);
  Put(bytes, rank.dropped);
  Put(bytes, static_cast<std::int64_t>(rank.events.size()));
  for (const TraceEvent& event : rank.events) Put(bytes, event);
  return bytes;
}

absl::StatusOr<RankEvents> FromBytes(absl::string_view text) {
  Bytes bytes(text);
  RankEvents rank;
  const bool known = bytes.Take<std::uint64_t>() == kMagic;
  rank.rank = bytes.Take<int>();
  rank.host = bytes.TakeText();
  for (int i : {0, 1}) {
    rank.moments_seconds[i] = bytes.Take<double>();
    rank.offsets_seconds[i] = bytes.Take<double>();
  }
  rank.names = bytes.TakeTexts();
  rank.tracks = bytes.TakeTexts();
  rank.dropped = bytes.Take<std::int64_t>();
  rank.events.resize(bytes.TakeCount(sizeof(TraceEvent)));
  for (TraceEvent& event : rank.events) event = bytes.Take<TraceEvent>();
  if (known && bytes.ok() && bytes.empty() && IndicesFit(rank)) return rank;
  return absl::DataLossError("bytes that are no trace events: are all ranks of one build?");
}

}  // namespace plait::data
