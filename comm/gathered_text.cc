#include "comm/gathered_text.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace plait::comm {

std::vector<std::string> GatherText(const Communicator& world, absl::string_view mine, CallSite site) {
  std::vector<std::int64_t> lengths(world.size(), 0);
  const std::int64_t length = static_cast<std::int64_t>(mine.size());
  world.AllGather(ConstBufferOf(absl::MakeConstSpan(&length, 1)), BufferOf(absl::MakeSpan(lengths)), site);
  const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::vector<std::string> texts(world.size());
  if (longest == 0) return texts;
  std::vector<std::uint8_t> padded(longest, 0), all(longest * world.size());
  std::copy(mine.begin(), mine.end(), padded.begin());
  world.AllGather(ConstBufferOf(absl::MakeConstSpan(padded)), BufferOf(absl::MakeSpan(all)), site);
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto begin = all.begin() + rank * longest;
    texts[rank].assign(begin, begin + lengths[rank]);
  }
  return texts;
}

std::string BroadcastText(const Communicator& world, absl::string_view mine, int root, CallSite site) {
  std::string text(mine);
  std::int64_t length[1] = {static_cast<std::int64_t>(text.size())};
  world.Broadcast(BufferOf(absl::MakeSpan(length)), root, site);
  text.resize(static_cast<std::size_t>(length[0]));
  world.Broadcast({text.data(), length[0], DataType::kUInt8}, root, site);
  return text;
}

std::string RankRanges(const std::vector<int>& ranks, int most) {
  std::string text;
  int ranges = 0;
  for (std::size_t i = 0; i < ranks.size();) {
    if (ranges++ == most) return absl::StrCat(text, " and ", ranks.size() - i, " more");
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", ranks[i]);
    if (last > i) absl::StrAppend(&text, "-", ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace plait::comm
