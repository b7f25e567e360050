#include "base/nearest_word.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace plait::base {
namespace {

// Sharing one or two letters is no similarity.
constexpr std::size_t kTellingLength = 3;

bool OneContainsTheOther(const std::string& a, const std::string& b) {
  if (std::min(a.size(), b.size()) < kTellingLength) return false;
  return a.find(b) != std::string::npos || b.find(a) != std::string::npos;
}

int Distance(const std::string& a, const std::string& b) {
  const int edits = EditDistance(a, b);
  return OneContainsTheOther(a, b) ? std::min(edits, 1) : edits;
}

}  // namespace

int EditDistance(const std::string& a, const std::string& b) {
  // Rows i - 2, i - 1 and i of the table of distances between prefixes.
  std::vector<int> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int changed = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

std::string NearestWord(const std::string& word, const std::vector<std::string>& words) {
  PLAIT_CHECK(!words.empty());
  return *std::min_element(words.begin(), words.end(), [&](const std::string& a, const std::string& b) {
    return Distance(word, a) < Distance(word, b);
  });
}

}  // namespace plait::base
