// The merge loop of byte-pair encoding: repeatedly merges the adjacent pair of lowest rank. Private to data/text.
#ifndef PLAIT_DATA_TEXT_MERGE_PAIRS_H_
#define PLAIT_DATA_TEXT_MERGE_PAIRS_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

namespace plait::data {

template <typename Symbol>
struct PairMerge {
  double rank;  // the lowest is merged first, the leftmost among equals
  Symbol merged;
};

// `find(left, right)` returns the std::optional<PairMerge<Symbol>> of two neighbours; nullopt: they are not merged.
// O(n log n) for n symbols.
template <typename Symbol, typename Find>
std::vector<Symbol> MergePairs(std::vector<Symbol> symbols, const Find& find) {
  // A candidate merge; valid as long as both positions still hold the same symbols.
  struct Wish {
    double rank;
    std::ptrdiff_t left;
    Symbol left_symbol, right_symbol, merged;
    bool operator>(const Wish& other) const {
      return std::tie(rank, left) > std::tie(other.rank, other.left);
    }
  };
  // A doubly linked list in arrays: a merge keeps the left position and removes the right one.
  const std::ptrdiff_t count = std::ssize(symbols);
  std::vector<std::ptrdiff_t> before(count), after(count);
  for (std::ptrdiff_t i = 0; i < count; ++i) before[i] = i - 1, after[i] = i + 1 < count ? i + 1 : -1;
  std::priority_queue<Wish, std::vector<Wish>, std::greater<Wish>> wishes;
  const auto wish = [&](std::ptrdiff_t left) {
    if (left < 0 || after[left] < 0) return;
    const Symbol &a = symbols[left], &b = symbols[after[left]];
    const std::optional<PairMerge<Symbol>> merge = find(a, b);
    if (merge) wishes.push({merge->rank, left, a, b, merge->merged});
  };
  for (std::ptrdiff_t i = 0; i < count; ++i) wish(i);
  while (!wishes.empty()) {
    const Wish best = wishes.top();
    wishes.pop();
    const std::ptrdiff_t left = best.left, right = after[left];  // right is -1 where left was taken out
    if (right < 0 || symbols[left] != best.left_symbol || symbols[right] != best.right_symbol) continue;
    symbols[left] = best.merged;
    after[left] = std::exchange(after[right], -1);
    if (after[left] >= 0) before[after[left]] = left;
    wish(before[left]);
    wish(left);
  }
  std::vector<Symbol> merged;
  for (std::ptrdiff_t i = count > 0 ? 0 : -1; i >= 0; i = after[i]) merged.push_back(symbols[i]);
  return merged;
}

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_MERGE_PAIRS_H_
