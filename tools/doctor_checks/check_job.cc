#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "tools/doctor_checks/checks.h"

namespace plait::doctor {
namespace {

constexpr double kWarnClockSeconds = 0.01;
constexpr double kErrorClockSeconds = 60;

// "Open MPI" of "Open MPI 4.1.4".
absl::string_view Maker(absl::string_view version) { return version.substr(0, version.rfind(' ')); }

std::set<std::string> BootsOf(const Ranks& ranks, const std::string& host) {
  std::set<std::string> boots;
  for (const RankFacts& rank : ranks) {
    if (rank.host == host) boots.insert(rank.boot_id);
  }
  return boots;
}

int CountHosts(const Ranks& ranks) {
  std::set<std::pair<std::string, std::string>> hosts;
  for (const RankFacts& rank : ranks) hosts.emplace(rank.host, rank.boot_id);
  return static_cast<int>(hosts.size());
}

}  // namespace

Finding CheckMpi(const Ranks& ranks) {
  const std::string fine = absl::StrCat(ranks[0].mpi_library, ", started by ", ranks[0].launcher_kind);
  return Judge("MPI", fine, ranks, [](const RankFacts& rank) -> std::optional<Complaint> {
    if (rank.mpi_launcher.empty()) {
      return Complaint{Severity::kWarning, "no mpirun or mpiexec that runs is on the PATH",
                       "install openmpi-bin or load the machine's MPI module"};
    }
    // Cray's mpiexec belongs to no library.
    if (rank.mpi_launcher == rank.mpi_library || Maker(rank.mpi_launcher) == "PALS") return std::nullopt;
    const bool same_maker = Maker(rank.mpi_launcher) == Maker(rank.mpi_library);
    return Complaint{
        same_maker ? Severity::kWarning : Severity::kError,
        absl::StrCat("the program has ", rank.mpi_library, ", mpirun on the PATH is ", rank.mpi_launcher),
        absl::StrCat("put the mpirun of ", rank.mpi_library, " first on the PATH")};
  });
}

Finding CheckRanks(const Ranks& ranks, int asked) {
  const int started = static_cast<int>(ranks.size());
  const int hosts = CountHosts(ranks);
  const std::string found = absl::StrCat(started, started == 1 ? " rank" : " ranks", " on ", hosts,
                                         hosts == 1 ? " host" : " hosts");
  if (asked <= 0 || asked == started) return {Severity::kOk, "ranks", found, ""};
  return {Severity::kError, "ranks", absl::StrCat(found, ", asked for ", asked),
          "start the program with the launcher of the MPI that it was built with"};
}

std::vector<Finding> CheckContradictions(const std::vector<std::string>& contradictions) {
  if (contradictions.empty()) {
    return {{Severity::kOk, "environment", "launcher, scheduler and ranks agree", ""}};
  }
  std::vector<Finding> findings;
  for (const std::string& line : contradictions) {
    // The line holds its remedy, behind the last semicolon.
    const std::size_t end = line.rfind("; ");
    const bool has_remedy = end != line.npos;
    findings.push_back(
        {Severity::kError, "environment", line.substr(0, end), has_remedy ? line.substr(end + 2) : ""});
  }
  return findings;
}

Finding CheckHostNames(const Ranks& ranks) {
  const int hosts = CountHosts(ranks);
  const std::string fine = absl::StrCat(hosts == 1 ? "the host's name resolves" : "all hosts' names resolve",
                                        " (", ranks[0].host, " is ", ranks[0].resolved_address, ")");
  return Judge("host names", fine, ranks, [&](const RankFacts& rank) -> std::optional<Complaint> {
    if (BootsOf(ranks, rank.host).size() > 1) {
      return Complaint{Severity::kError, "several hosts have this name",
                       "give each host a name (hostnamectl)"};
    }
    if (!rank.resolved_address.empty()) return std::nullopt;
    return Complaint{hosts > 1 ? Severity::kError : Severity::kWarning,
                     "the host's own name does not resolve", "add it to /etc/hosts or the name service"};
  });
}

Finding CheckClocks(const Ranks& ranks) {
  double largest = 0, uncertainty = 0;
  for (const RankFacts& rank : ranks) {
    largest = std::max(largest, std::abs(rank.clock_offset_seconds));
    uncertainty = std::max(uncertainty, rank.clock_uncertainty_seconds);
  }
  const std::string fine = ranks.size() == 1 ? "one rank, one clock"
                                             : absl::StrFormat("at most %.3f ms apart (within %.3f ms)",
                                                               1e3 * largest, 1e3 * uncertainty);
  return Judge("clocks", fine, ranks, [](const RankFacts& rank) -> std::optional<Complaint> {
    // Known for certain only beyond the uncertainty.
    const double apart = std::abs(rank.clock_offset_seconds) - rank.clock_uncertainty_seconds;
    if (apart <= kWarnClockSeconds) return std::nullopt;
    return Complaint{
        apart > kErrorClockSeconds ? Severity::kError : Severity::kWarning,
        absl::StrFormat("%+.3f s from rank 0's clock", rank.clock_offset_seconds),
        "synchronise the hosts' clocks (chrony or ntpd); traces correct for it, times of files do not"};
  });
}

std::vector<Finding> CheckAll(const Ranks& ranks, int asked, const std::vector<std::string>& contradictions,
                              const std::string& folder) {
  std::vector<Finding> findings = {CheckMpi(ranks), CheckRanks(ranks, asked)};
  for (Finding& finding : CheckContradictions(contradictions)) findings.push_back(std::move(finding));
  for (const auto& check : {CheckHostNames, CheckClocks, CheckCores, CheckThreads, CheckMemory,
                            CheckOpenFiles, CheckSharedMemory, CheckDevices, CheckNccl}) {
    findings.push_back(check(ranks));
  }
  findings.push_back(CheckFreeSpace(ranks, folder));
  findings.push_back(CheckGnuplot(ranks));
  findings.push_back(CheckLocale(ranks));
  return findings;
}

}  // namespace plait::doctor
