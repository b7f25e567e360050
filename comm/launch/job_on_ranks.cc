#include "comm/launch/job_on_ranks.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "comm/gathered_text.h"

namespace plait::comm {
namespace {

// What a rank tells the others, one item a line.
struct HostReport {
  std::string host, boot_id, fingerprint, launch_command;
  std::vector<std::string> contradictions;
};

std::string Serialize(const HostReport& report) {
  std::vector<std::string> lines = {report.host, report.boot_id, report.fingerprint, report.launch_command};
  lines.insert(lines.end(), report.contradictions.begin(), report.contradictions.end());
  return absl::StrJoin(lines, "\n");
}

HostReport Parse(absl::string_view text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  return {lines[0], lines[1], lines[2], lines[3], std::vector<std::string>(lines.begin() + 4, lines.end())};
}

std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

bool SameHost(const HostReport& a, const HostReport& b) { return a.host == b.host && a.boot_id == b.boot_id; }

// Ranks by what they say, in the order of the lowest rank that says it.
std::vector<std::pair<std::string, std::vector<int>>> BySaying(
    const std::vector<std::vector<std::string>>& said) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    for (const std::string& line : said[rank]) {
      auto group =
          std::find_if(groups.begin(), groups.end(), [&](const auto& entry) { return entry.first == line; });
      if (group == groups.end()) group = groups.insert(groups.end(), {line, {}});
      if (group->second.empty() || group->second.back() != static_cast<int>(rank)) {
        group->second.push_back(static_cast<int>(rank));
      }
    }
  }
  return groups;
}

std::string Who(const std::vector<int>& ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", RankRanges(ranks));
}

std::vector<std::string> OnRanks(const std::vector<std::vector<std::string>>& said) {
  std::vector<std::string> lines;
  for (const auto& [line, ranks] : BySaying(said)) {
    lines.push_back(ranks.size() == said.size() ? line : absl::StrCat(Who(ranks), ": ", line));
  }
  return lines;
}

// The place that `world` gives this rank.
Job PlaceAmong(const Communicator& world, const std::vector<HostReport>& reports, Job job) {
  job.rank = world.rank();
  job.size = world.size();
  job.local_rank = job.local_size = 0;
  job.hosts.clear();
  std::vector<int> first_ranks;  // of each host
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto known = std::find_if(first_ranks.begin(), first_ranks.end(),
                                    [&](int first) { return SameHost(reports[first], reports[rank]); });
    const int node = static_cast<int>(known - first_ranks.begin());
    if (known == first_ranks.end()) {
      first_ranks.push_back(rank);
      job.hosts.push_back({.host = reports[rank].host, .slots = 0});
    }
    ++job.hosts[node].slots;
    if (!SameHost(reports[rank], reports[world.rank()])) continue;
    job.node_id = node;
    job.local_size = job.hosts[node].slots;
    if (rank < world.rank()) ++job.local_rank;
  }
  return job;
}

// What the environment said about this rank and the world knows better; empty: nothing. Without the numbers
// of this rank alone, so that the lines of many ranks are one.
std::string Disproved(const Job& said, const Job& found) {
  if (said.launcher == LauncherKind::kNone || said.launcher == LauncherKind::kTorchrun) return "";
  const char* const own_mpi =
      ": expected the same; start the program with the launcher of the MPI that it was built with";
  if (said.size_told && said.size != found.size) {
    return absl::StrCat(NameOf(said.launcher), " says size ", said.size, ", MPI says ", found.size, own_mpi);
  }
  if (said.rank != found.rank)
    return absl::StrCat(NameOf(said.launcher), " says another rank than MPI", own_mpi);
  if (!said.local_told) return "";
  if (said.local_size != found.local_size) {
    return absl::StrCat(
        NameOf(said.launcher), " says ", said.local_size, " ranks on this host, there are ", found.local_size,
        ": expected the same; check that each host has a name of its own and is one node of the "
        "scheduler's");
  }
  if (said.local_rank == found.local_rank) return "";
  return absl::StrCat(
      NameOf(said.launcher),
      " counts the ranks of this host in another order than MPI: expected the order of ranks; leave "
      "out options that reorder ranks");
}

std::vector<std::string> SharedNames(const std::vector<HostReport>& reports) {
  std::map<std::string, std::set<std::string>> boots;
  for (const HostReport& report : reports) boots[report.host].insert(report.boot_id);
  std::vector<std::string> lines;
  for (const auto& [host, ids] : boots) {
    if (ids.size() > 1) {
      lines.push_back(absl::StrCat(ids.size(), " different hosts are called ", host,
                                   ": expected a name for each; set them with hostnamectl"));
    }
  }
  return lines;
}

template <typename Member>
std::vector<std::string> Column(const std::vector<HostReport>& reports, Member member) {
  std::vector<std::string> values;
  for (const HostReport& report : reports) values.push_back(report.*member);
  return values;
}

}  // namespace

void CompleteJob(const Communicator& world, absl::string_view fingerprint, Job* job) {
  std::vector<HostReport> reports;
  const HostReport mine = {job->host, job->boot_id, OneLine(std::string(fingerprint)),
                           OneLine(job->launch_command), job->contradictions};
  for (const std::string& text : GatherText(world, Serialize(mine))) reports.push_back(Parse(text));
  Job placed = PlaceAmong(world, reports, *job);
  std::vector<std::vector<std::string>> said, disproved;
  for (const HostReport& report : reports) said.push_back(report.contradictions);
  for (const std::string& text : GatherText(world, Disproved(*job, placed))) {
    disproved.push_back(text.empty() ? std::vector<std::string>() : std::vector<std::string>{text});
  }
  placed.contradictions.clear();
  for (const auto& lines : {OnRanks(said), OnRanks(disproved), SharedNames(reports)}) {
    placed.contradictions.insert(placed.contradictions.end(), lines.begin(), lines.end());
  }
  const std::string odd =
      OddBuilds(Column(reports, &HostReport::fingerprint), Column(reports, &HostReport::host));
  if (!odd.empty()) placed.contradictions.push_back(odd);
  const std::vector<std::string> commands = Column(reports, &HostReport::launch_command);
  const auto found =
      std::find_if(commands.begin(), commands.end(), [](const auto& text) { return !text.empty(); });
  if (found != commands.end()) placed.launch_command = *found;
  *job = std::move(placed);
}

std::string BuildFingerprint(absl::string_view revision) {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::uint64_t checksum = 14695981039346656037u;  // FNV-1a, 64 bits, over words
  std::array<std::uint64_t, 8192> words;
  std::int64_t size = 0;
  while (file) {
    words.fill(0);
    file.read(reinterpret_cast<char*>(words.data()), sizeof words);
    size += file.gcount();
    if (file.gcount() == 0) break;
    for (const std::uint64_t word : words) checksum = (checksum ^ word) * 1099511628211u;
  }
  if (size == 0) return absl::StrCat(revision, " unreadable");
  return absl::StrFormat("%s %016x", revision, checksum);
}

std::string OddBuilds(const std::vector<std::string>& fingerprints, const std::vector<std::string>& hosts) {
  std::map<std::string, int> counts;
  for (const std::string& fingerprint : fingerprints) ++counts[fingerprint];
  if (counts.size() < 2) return "";
  const std::string* usual = &fingerprints[0];
  for (const std::string& fingerprint : fingerprints) {
    if (counts[fingerprint] > counts[*usual]) usual = &fingerprint;
  }
  std::vector<std::string> odd;
  for (std::size_t rank = 0; rank < fingerprints.size() && odd.size() < 8; ++rank) {
    if (fingerprints[rank] == *usual) continue;
    odd.push_back(absl::StrCat("rank ", rank, " (", hosts[rank], ") runs ", fingerprints[rank]));
  }
  const int more = static_cast<int>(fingerprints.size()) - counts[*usual] - static_cast<int>(odd.size());
  return absl::StrCat("different builds: ", absl::StrJoin(odd, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more ranks differ") : "", "; the other ",
                      counts[*usual], " ranks run ", *usual,
                      ": expected one build on all; copy the same program to all hosts");
}

}  // namespace plait::comm
