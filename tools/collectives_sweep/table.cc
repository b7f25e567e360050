#include "tools/collectives_sweep/table.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace plait::collectives_sweep {
namespace {

constexpr int kMostRanksInFull = 16;

using Entry = std::function<double(int a, int b)>;

std::vector<std::string> FullMatrix(const PairMatrix& matrix, const Entry& entry) {
  std::vector<std::string> lines = {"#  rank"};
  for (int b = 0; b < matrix.ranks; ++b) absl::StrAppendFormat(&lines[0], " %8d", b);
  for (int a = 0; a < matrix.ranks; ++a) {
    std::string line = absl::StrFormat("%7d", a);
    for (int b = 0; b < matrix.ranks; ++b) {
      absl::StrAppend(&line, a == b ? "        -" : absl::StrFormat(" %8.2f", entry(a, b)));
    }
    lines.push_back(absl::StrCat(line, "  ", matrix.hosts[a]));
  }
  return lines;
}

std::vector<std::string> RowsInShort(const PairMatrix& matrix, const Entry& entry) {
  std::vector<std::string> lines = {"#  rank    least   median greatest"};
  for (int a = 0; a < matrix.ranks; ++a) {
    std::vector<double> row;
    for (int b = 0; b < matrix.ranks; ++b) {
      if (a != b) row.push_back(entry(a, b));
    }
    std::sort(row.begin(), row.end());
    lines.push_back(absl::StrFormat("%7d %8.2f %8.2f %8.2f  %s", a, row.front(), row[row.size() / 2],
                                    row.back(), matrix.hosts[a]));
  }
  return lines;
}

}  // namespace

std::vector<std::string> Heading(const Sweep& sweep, const Row& row) {
  return {
      absl::StrFormat("# %s, group %s of %d %s", Name(row.operation), sweep.groups[row.group], row.ranks,
                      row.ranks == 1 ? "rank" : "ranks"),
      "#       size         count    type   redop  root     time      min      max    algbw    busbw  #wrong",
      "#        (B)    (elements)                           (us)     (us)     (us)   (GB/s)   (GB/s)"};
}

std::string Line(const Row& row) {
  const bool barrier = row.operation == Swept::kBarrier;
  return absl::StrFormat("%12d  %12d  %6s  %6s  %4d %8.2f %8.2f %8.2f %8.3g %8.3g  %6d", row.message.bytes,
                         row.message.count, barrier ? "none" : comm::Name(kType),
                         Reduces(row.operation) ? "sum" : "none", HasRoot(row.operation) ? kRoot : -1,
                         1e6 * row.seconds.median, 1e6 * row.seconds.least, 1e6 * row.seconds.greatest,
                         1e-9 * row.algorithm_bandwidth(), 1e-9 * row.bus_bandwidth(), row.wrong);
}

std::vector<std::string> MatrixLines(const PairMatrix& matrix) {
  std::vector<std::string> lines;
  if (matrix.ranks < 2) return lines;
  const auto add = [&](const std::string& title, const Entry& entry) {
    lines.push_back(title);
    const bool full = matrix.ranks <= kMostRanksInFull;
    for (std::string& line : full ? FullMatrix(matrix, entry) : RowsInShort(matrix, entry)) {
      lines.push_back(std::move(line));
    }
  };
  add("# latency of 8 bytes between two ranks, one way (us)",
      [&](int a, int b) { return 1e6 * matrix.latency(a, b); });
  add(absl::StrFormat("# bandwidth of %d bytes between two ranks (GB/s)", matrix.message_bytes),
      [&](int a, int b) { return 1e-9 * matrix.bandwidth(a, b); });
  return lines;
}

}  // namespace plait::collectives_sweep
