#include "data/text/document_index.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <ranges>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plait::data {
namespace {

constexpr absl::string_view kMagic("MMIDIDX\0\0", 9);
constexpr std::int64_t kHeaderBytes = 34;
// More than any disk holds; sums do not overflow 64 bits.
constexpr std::int64_t kMostTokens = std::int64_t{1} << 60;

template <typename Number>
Number NumberAt(const char* numbers, std::int64_t index) {
  Number number;
  std::memcpy(&number, numbers + index * static_cast<std::int64_t>(sizeof(number)), sizeof(number));
  return number;
}

// Binary search: the first of 0..count-1 for which `is_behind` is true, as for all that follow; count if there is none.
template <typename IsBehind>
std::int64_t FirstBehind(std::int64_t count, const IsBehind& is_behind) {
  const auto all = std::views::iota(std::int64_t{0}, count);
  const auto found = std::ranges::partition_point(all, [&](std::int64_t i) { return !is_behind(i); });
  return found == all.end() ? count : *found;
}

}  // namespace

absl::StatusOr<DocumentIndex> DocumentIndex::Parse(absl::string_view bytes, const std::string& name) {
  DocumentIndex index;
  PLAIT_RETURN_IF_ERROR(index.ParseHeader(bytes, name));
  PLAIT_RETURN_IF_ERROR(index.CheckNumbers(name));
  return index;
}

absl::Status DocumentIndex::ParseHeader(absl::string_view bytes, const std::string& name) {
  const auto damaged = [&](const std::string& what) {
    return absl::DataLossError(absl::StrCat(name, ": ", what));
  };
  const std::int64_t size = std::ssize(bytes);
  if (size < kHeaderBytes || bytes.substr(0, kMagic.size()) != kMagic) {
    return damaged("not a Megatron-LM index: expected MMIDIDX at its start");
  }
  const char* const at = bytes.data() + kMagic.size();
  const auto version = NumberAt<std::uint64_t>(at, 0);
  if (version != 1) return damaged(absl::StrCat("version ", version, " of the format; expected 1"));
  const int code = NumberAt<std::uint8_t>(at + 8, 0);
  if (code != 8 && code != 4) {
    return damaged(
        absl::StrCat("tokens of type ", code, "; expected 8 (uint16) or 4 (int32): prepare the text again"));
  }
  type_ = code == 8 ? TokenType::kUint16 : TokenType::kInt32;
  const auto sequences = NumberAt<std::uint64_t>(at + 9, 0), marks = NumberAt<std::uint64_t>(at + 9, 1);
  const auto most = static_cast<std::uint64_t>(size);
  // Bounds first, so that the sum cannot overflow.
  if (sequences > most || marks > most || marks < 1 || kHeaderBytes + 12 * sequences + 8 * marks > most) {
    return damaged(absl::StrCat(sequences, " sequences and ", marks - 1, " documents in ", size, " bytes"));
  }
  sequences_ = static_cast<std::int64_t>(sequences);
  documents_ = static_cast<std::int64_t>(marks) - 1;
  lengths_ = bytes.data() + kHeaderBytes;
  pointers_ = lengths_ + 4 * sequences_;
  first_sequences_ = pointers_ + 8 * sequences_;
  return absl::OkStatus();
}

absl::Status DocumentIndex::CheckNumbers(const std::string& name) {
  const auto damaged = [&](const std::string& what) {
    return absl::DataLossError(absl::StrCat(name, ": ", what));
  };
  for (std::int64_t s = 0; s < sequences_; ++s) {
    const std::int64_t length = Length(s), begin = NumberAt<std::int64_t>(pointers_, s);
    if (length < 0 || begin != tokens_ * BytesOf(type_) || tokens_ > kMostTokens) {
      return damaged(absl::StrCat("sequence ", s, " of ", length, " tokens at byte ", begin, " after ",
                                  tokens_, " tokens"));
    }
    tokens_ += length;
  }
  for (std::int64_t d = 0; d <= documents_; ++d) {
    const std::int64_t first = FirstSequence(d), least = d == 0 ? 0 : FirstSequence(d - 1);
    if (first < least || first > sequences_ || (d == 0 && first != 0) ||
        (d == documents_ && first != sequences_)) {
      return damaged(absl::StrCat("document ", d, " at sequence ", first, " of ", sequences_));
    }
  }
  return absl::OkStatus();
}

std::int64_t DocumentIndex::Length(std::int64_t sequence) const {
  return NumberAt<std::int32_t>(lengths_, sequence);
}

std::int64_t DocumentIndex::Begin(std::int64_t sequence) const {
  return sequence == sequences_ ? tokens_ : NumberAt<std::int64_t>(pointers_, sequence) / BytesOf(type_);
}

std::int64_t DocumentIndex::FirstSequence(std::int64_t document) const {
  return NumberAt<std::int64_t>(first_sequences_, document);
}

void DocumentIndex::Ignore(IgnoredTargets ignored, std::int64_t first,
                           absl::Span<std::int64_t> targets) const {
  if (ignored == IgnoredTargets::kNone || sequences_ == 0) return;
  const std::int64_t end = first + std::ssize(targets);
  // From the sequence that has token `first`; an empty one has none.
  std::int64_t sequence = FirstBehind(sequences_, [&](std::int64_t s) { return Begin(s) > first; }) - 1;
  for (; sequence < sequences_ && Begin(sequence) < end; ++sequence) {
    const std::int64_t document =
        FirstBehind(documents_ + 1, [&](std::int64_t d) { return FirstSequence(d) > sequence; }) - 1;
    const std::int64_t begin = Begin(sequence);
    const bool is_first = begin == Begin(FirstSequence(document));
    const bool is_prompt = sequence + 1 < FirstSequence(document + 1);
    std::int64_t to = is_first && Length(sequence) > 0 ? begin + 1 : begin;
    if (ignored == IgnoredTargets::kPrompts && is_prompt) to = begin + Length(sequence);
    for (std::int64_t token = std::max(begin, first); token < std::min(to, end); ++token) {
      targets[static_cast<std::size_t>(token - first)] = kIgnoredTarget;
    }
  }
}

}  // namespace plait::data
