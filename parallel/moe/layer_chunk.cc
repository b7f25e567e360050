#include "parallel/moe/layer_chunk.h"

#include <utility>

#include "base/check.h"

namespace plait::moe {
namespace {

RowPlaces PlacesOf(RowSharing& sharing, const std::int64_t* experts, std::int64_t tokens, std::int64_t k,
                   RowNumbers& choices) {
  RowPlaces places;
  for (std::int64_t i = 0; i < tokens * k; ++i) {
    if (experts[i] < 0) continue;
    std::int32_t rank = 0, slot = 0;
    sharing.Next(static_cast<int>(experts[i]), &rank, &slot);
    places.rows.push_back(i / k);
    places.ranks.push_back(rank);
    places.slots.push_back(slot);
    choices.push_back(i);
  }
  return places;
}

// Stable: by slot, then in the order in which places were received.
void SortBySlot(std::size_t slots, Chunk& chunk) {
  const RowPlaces& received = chunk.exchange.received();
  chunk.offsets.assign(slots + 1, 0);
  for (const std::int32_t slot : received.slots) ++chunk.offsets[slot + 1];
  for (std::size_t slot = 0; slot < slots; ++slot) chunk.offsets[slot + 1] += chunk.offsets[slot];
  std::vector<std::int64_t> next(chunk.offsets.begin(), chunk.offsets.end() - 1);
  chunk.sorted.resize(received.size());
  chunk.rows.resize(received.size());
  for (std::size_t place = 0; place < received.size(); ++place) {
    const std::int64_t at = next[received.slots[place]]++;
    chunk.sorted[at] = static_cast<std::int64_t>(place);
    chunk.rows[at] = received.rows[place];
  }
}

}  // namespace

RowSharing::RowSharing(const ExpertPlacement& placement, int source)
    : placement_(placement), source_(source), positions_(placement.experts()) {}

void RowSharing::Next(int expert, std::int32_t* rank, std::int32_t* slot) {
  PLAIT_CHECK(expert < placement_.experts()) << "expert " << expert << " of " << placement_.experts();
  const absl::Span<const RowShare> shares = placement_.shares(source_, expert);
  Position& at = positions_[expert];
  if (shares.empty()) {
    *rank = placement_.home_rank(expert);
    *slot = expert - placement_.first_home_expert(*rank);
    return;
  }
  while (at.rows == shares[at.share].rows) {
    PLAIT_CHECK(at.share + 1 < shares.size()) << "more rows for expert " << expert << " than were planned";
    ++at.share;
    at.rows = 0;
  }
  ++at.rows;
  *rank = shares[at.share].rank;
  *slot = shares[at.share].slot;
}

std::vector<Chunk> MakeChunks(const ExchangeRanks& ranks, const ExpertPlacement& placement,
                              const at::Tensor& experts, int chunks) {
  const std::int64_t tokens = experts.size(0), k = experts.size(1);
  const auto* const numbers = experts.const_data_ptr<std::int64_t>();
  const std::size_t slots = placement.slots(ranks.comm().rank()).size();
  RowSharing sharing(placement, ranks.comm().rank());
  std::vector<Chunk> result;
  for (int c = 0; c < chunks; ++c) {
    const std::int64_t first = tokens * c / chunks, count = tokens * (c + 1) / chunks - first;
    RowNumbers choices;
    RowPlaces places = PlacesOf(sharing, numbers + first * k, count, k, choices);
    result.push_back({.first = first,
                      .tokens = count,
                      .choices = std::move(choices),
                      .exchange = RowExchange(ranks, std::move(places), count)});
    SortBySlot(slots, result.back());
  }
  return result;
}

}  // namespace plait::moe
