#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/quantity.h"
#include "tools/doctor_checks/checks.h"

namespace plait::doctor {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;
constexpr double kGiB = 1024.0 * kMiB;
constexpr double kWarnMemoryBytes = 1 * kGiB, kErrorMemoryBytes = 128 * kMiB;
constexpr double kSharedMemoryBytesPerRank = 8 * kMiB;
constexpr double kWarnFreeBytes = 1 * kGiB, kErrorFreeBytes = 64 * kMiB;
constexpr int kWarnOpenFiles = 1024;

std::string Bytes(double bytes) { return base::FormatQuantity(bytes, "bytes"); }

double PerRank(std::int64_t bytes, const RankFacts& rank) {
  return static_cast<double>(bytes) / std::max(1, rank.local_size);
}

// Of the outermost parallel regions, the first number of a list such as "2,1" (OpenMP 5.2, 21.1.2); 0: no list of
// numbers.
int OuterThreads(const std::string& list) {
  int first = 0;
  for (const absl::string_view word : absl::StrSplit(list, ',')) {
    int threads = 0;
    if (!absl::SimpleAtoi(word, &threads) || threads < 1) return 0;
    if (first == 0) first = threads;
  }
  return first;
}

std::string TooManyThreads(const RankFacts& rank, int threads) {
  const int own = static_cast<int>(rank.cores.size());
  if (own < rank.host_cores && threads > own) {
    return absl::StrCat("OMP_NUM_THREADS=", threads, ", but bound to ", own, own == 1 ? " core" : " cores");
  }
  return absl::StrCat(rank.local_size, rank.local_size == 1 ? " rank" : " ranks",
                      " with OMP_NUM_THREADS=", threads, " share ", rank.host_cores, " cores");
}

template <typename Value>
double Least(const Ranks& ranks, Value value) {
  double least = std::numeric_limits<double>::infinity();
  for (const RankFacts& rank : ranks) least = std::min(least, static_cast<double>(value(rank)));
  return least;
}

}  // namespace

Finding CheckMemory(const Ranks& ranks) {
  const auto available = [](const RankFacts& rank) { return PerRank(rank.memory_available_bytes, rank); };
  const std::string fine = absl::StrCat("at least ", Bytes(Least(ranks, available)), " for each rank");
  return Judge("memory", fine, ranks, [&](const RankFacts& rank) -> std::optional<Complaint> {
    if (rank.memory_available_bytes == kUnknown) {
      return Complaint{Severity::kWarning, "/proc/meminfo cannot be read", "mount /proc"};
    }
    if (available(rank) >= kWarnMemoryBytes) return std::nullopt;
    return Complaint{available(rank) < kErrorMemoryBytes ? Severity::kError : Severity::kWarning,
                     absl::StrCat(Bytes(available(rank)), " available for each"),
                     "start fewer ranks on a host or ask the scheduler for more memory"};
  });
}

Finding CheckOpenFiles(const Ranks& ranks) {
  const auto limit = [](const RankFacts& rank) { return rank.open_files_limit; };
  const std::string fine =
      absl::StrCat("a process may have ", static_cast<std::int64_t>(Least(ranks, limit)));
  return Judge("open files", fine, ranks, [](const RankFacts& rank) -> std::optional<Complaint> {
    // Sockets to the other ranks, shared memory, libraries, data.
    const std::int64_t needed = 64 + 4 * std::int64_t{rank.size};
    if (rank.open_files_limit >= std::max<std::int64_t>(kWarnOpenFiles, needed)) return std::nullopt;
    return Complaint{rank.open_files_limit < needed ? Severity::kError : Severity::kWarning,
                     absl::StrCat("a process may have ", rank.open_files_limit, " (", needed, " are needed)"),
                     "raise the limit (ulimit -n 65536, or limits.conf)"};
  });
}

Finding CheckSharedMemory(const Ranks& ranks) {
  const auto free = [](const RankFacts& rank) { return rank.shared_memory_bytes; };
  const std::string fine = absl::StrCat(Bytes(Least(ranks, free)), " free in /dev/shm");
  return Judge("shared memory", fine, ranks, [](const RankFacts& rank) -> std::optional<Complaint> {
    if (rank.shared_memory_bytes == kUnknown) {
      return Complaint{Severity::kWarning, "there is no /dev/shm",
                       "mount a tmpfs there; ranks of a host use it"};
    }
    if (PerRank(rank.shared_memory_bytes, rank) >= kSharedMemoryBytesPerRank) return std::nullopt;
    return Complaint{
        Severity::kWarning,
        absl::StrCat(Bytes(rank.shared_memory_bytes), " free in /dev/shm for ", rank.local_size, " ranks"),
        "remove what is left there, or start the container with --shm-size=1g"};
  });
}

Finding CheckCores(const Ranks& ranks) {
  const std::string fine =
      absl::StrCat(ranks[0].local_size, ranks[0].local_size == 1 ? " rank on " : " ranks on ",
                   ranks[0].host_cores, " cores of ", ranks[0].host);
  return Judge("cores", fine, ranks, [](const RankFacts& rank) -> std::optional<Complaint> {
    if (rank.local_size <= rank.host_cores) return std::nullopt;
    return Complaint{Severity::kWarning,
                     absl::StrCat(rank.local_size, " ranks share ", rank.host_cores, " cores"),
                     "start fewer ranks on a host: those that wait take time from those that compute"};
  });
}

Finding CheckThreads(const Ranks& ranks) {
  const bool set = !ranks[0].omp_num_threads.empty();
  const std::string fine =
      set ? absl::StrCat("OMP_NUM_THREADS=", ranks[0].omp_num_threads, ", ", ranks[0].local_size,
                         ranks[0].local_size == 1 ? " rank" : " ranks", " on a host of ", ranks[0].host_cores,
                         " cores")
          : absl::StrCat(ranks[0].local_size == 1 ? "one rank, " : "for each rank ", ranks[0].cores.size(),
                         " cores");
  return Judge("threads", fine, ranks, [](const RankFacts& rank) -> std::optional<Complaint> {
    const int own = static_cast<int>(rank.cores.size());
    // At least one: with less a rank cannot do, the check of cores speaks of that.
    const int share = std::max(1, std::min(own, rank.host_cores / std::max(1, rank.local_size)));
    const std::string remedy = absl::StrCat("set OMP_NUM_THREADS=", share);
    if (rank.omp_num_threads.empty()) {
      if (own <= share) return std::nullopt;
      return Complaint{Severity::kWarning,
                       absl::StrCat("OMP_NUM_THREADS is not set: each of ", rank.local_size, " ranks starts ",
                                    own, " threads"),
                       remedy};
    }
    const int threads = OuterThreads(rank.omp_num_threads);
    if (threads < 1) {
      return Complaint{Severity::kWarning,
                       absl::StrCat("OMP_NUM_THREADS=", rank.omp_num_threads, " is no number"), remedy};
    }
    if (threads <= share) return std::nullopt;
    return Complaint{Severity::kWarning, TooManyThreads(rank, threads), remedy};
  });
}

Finding CheckFreeSpace(const Ranks& ranks, const std::string& folder) {
  const auto free = [](const RankFacts& rank) { return rank.folder_free_bytes; };
  const std::string fine = absl::StrCat(Bytes(Least(ranks, free)), " free in ", folder);
  return Judge("disk", fine, ranks, [&](const RankFacts& rank) -> std::optional<Complaint> {
    if (rank.folder_free_bytes == kUnknown) {
      return Complaint{Severity::kError, absl::StrCat("there is no folder ", folder),
                       "make it, or name another with --folder; on several hosts it must be shared"};
    }
    if (static_cast<double>(rank.folder_free_bytes) >= kWarnFreeBytes) return std::nullopt;
    const bool full = static_cast<double>(rank.folder_free_bytes) < kErrorFreeBytes;
    return Complaint{full ? Severity::kError : Severity::kWarning,
                     absl::StrCat(Bytes(static_cast<double>(rank.folder_free_bytes)), " free in ", folder),
                     "make room or name another folder with --folder"};
  });
}

Finding CheckGnuplot(const Ranks& ranks) {
  // Rank 0 draws.
  const Ranks drawing = {ranks[0]};
  return Judge("gnuplot", "on the PATH", drawing, [](const RankFacts& rank) -> std::optional<Complaint> {
    if (rank.has_gnuplot) return std::nullopt;
    return Complaint{Severity::kWarning, "gnuplot is not on the PATH",
                     "install gnuplot-nox for plots; runs go on without"};
  });
}

Finding CheckLocale(const Ranks& ranks) {
  const Ranks printing = {ranks[0]};
  return Judge("locale", "UTF-8", printing, [](const RankFacts& rank) -> std::optional<Complaint> {
    if (rank.utf8) return std::nullopt;
    return Complaint{Severity::kWarning,
                     "neither LC_ALL nor LC_CTYPE nor LANG names UTF-8: output is plain ASCII",
                     "set LANG=C.UTF-8"};
  });
}

}  // namespace plait::doctor
