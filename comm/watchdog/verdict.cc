#include "comm/watchdog/verdict.h"

#include <string.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace plait::comm {
namespace {

using Reports = std::vector<RankReport>;
using Lines = std::vector<std::string>;

std::string Who(const RankReport& r) {
  return absl::StrFormat("rank %d (%s, pid %d)", r.rank, r.host, r.pid);
}

std::string GroupName(const Position& position, std::uint64_t group) {
  const auto found = position.groups.find(group);
  return found == position.groups.end() ? "?" : found->second.name;
}

std::string Describe(const Position& position, const CallRecord& call) {
  return DescribeCall(call, GroupName(position, call.group));
}

std::string LastSeen(const RankReport& r, double now_seconds) {
  const Position& p = r.position;
  if (p.calls.empty()) {
    return p.phase.empty() ? "has made no call yet"
                           : absl::StrCat("has made no call yet, in phase ", p.phase);
  }
  const CallRecord& last = p.calls.back();
  const double ago = p.at_seconds - last.entered_seconds + std::max(0.0, now_seconds - r.received_seconds);
  return absl::StrFormat("last entered %s, %.1f s ago, in phase %s", Describe(p, last), ago, p.phase);
}

// World ranks that `call` of rank r waits for.
std::vector<int> Awaited(const Reports& reports, const RankReport& r, const CallRecord& call);

// "; rank 0 waits for it in #12 all_reduce[tp] f32[180736] at train.cc:88, in phase backward" for the first such rank.
std::string WhoWaitsFor(const RankReport& gone, const Reports& reports) {
  for (const RankReport& r : reports) {
    const CallRecord* call = r.position.Waiting();
    if (call == nullptr || r.state != RankState::kAlive) continue;
    const std::vector<int> awaited = Awaited(reports, r, *call);
    if (std::find(awaited.begin(), awaited.end(), gone.rank) == awaited.end()) continue;
    return absl::StrFormat("; rank %d waits for it in %s at %s:%d, in phase %s", r.rank,
                           Describe(r.position, *call), call->file, call->line, call->phase);
  }
  return "";
}

Lines FindGone(const Reports& reports, double now_seconds) {
  Lines lines;
  for (const RankReport& r : reports) {
    if (r.state == RankState::kAlive) continue;
    std::string how = "is dead: its process is gone";
    if (r.state == RankState::kExited)
      how = absl::StrCat("is dead: it called exit(", r.exit_code, ") in mid-run");
    if (r.state == RankState::kCrashed) {
      how = absl::StrFormat("is dead: it crashed with signal %d (%s)", r.exit_code, strsignal(r.exit_code));
    }
    if (r.state == RankState::kSilent) how = "does not answer: its process is stopped or its node is cut off";
    const std::string seen =
        r.position.calls.empty() ? "no call had been reported yet" : LastSeen(r, now_seconds);
    lines.push_back(absl::StrCat(Who(r), " ", how, "; ", seen, WhoWaitsFor(r, reports)));
  }
  return lines;
}

// Whether two ranks' records of the same collective match.
bool Match(const CallRecord& a, const CallRecord& b) {
  const CallFingerprint first = a.Fingerprint();
  CallFingerprint second = b.Fingerprint();
  if (first.operation == Operation::kAllToAllV) second.count = first.count;
  return first == second;
}

struct Sighting {
  const RankReport* report;
  const CallRecord* call;
};

// By (group, sequence): what each rank called, as far as its ring buffer still has it.
std::map<std::pair<std::uint64_t, std::int64_t>, std::vector<Sighting>> CollectSightings(
    const Reports& reports) {
  std::map<std::pair<std::uint64_t, std::int64_t>, std::vector<Sighting>> seen;
  for (const RankReport& r : reports) {
    for (const CallRecord& call : r.position.calls) {
      if (!IsPointToPoint(call.operation)) seen[{call.group, call.sequence}].push_back({&r, &call});
    }
  }
  return seen;
}

// The call that most ranks made; in a tie, that of the lowest rank.
Sighting Majority(const std::vector<Sighting>& sightings) {
  const auto agreeing = [&](const Sighting& s) {
    return std::count_if(sightings.begin(), sightings.end(),
                         [&](const Sighting& t) { return Match(*s.call, *t.call); });
  };
  Sighting best = sightings.front();
  for (const Sighting& s : sightings) {
    if (agreeing(s) > agreeing(best)) best = s;
  }
  return best;
}

Lines FindMismatched(const Reports& reports) {
  Lines lines;
  std::set<int> named;  // a rank is out of step from its first mismatch on
  for (auto& [key, sightings] : CollectSightings(reports)) {
    std::erase_if(sightings, [&](const Sighting& s) { return named.count(s.report->rank) > 0; });
    if (sightings.empty()) continue;
    const Sighting usual = Majority(sightings);
    for (const Sighting& s : sightings) {
      if (Match(*s.call, *usual.call)) continue;
      named.insert(s.report->rank);
      lines.push_back(absl::StrFormat(
          "%s is mismatched: it entered %s at %s:%d where rank %d entered %s at %s:%d, in phase %s",
          Who(*s.report), Describe(s.report->position, *s.call), s.call->file, s.call->line,
          usual.report->rank, Describe(usual.report->position, *usual.call), usual.call->file,
          usual.call->line, s.call->phase));
    }
  }
  return lines;
}

Lines FindFailed(const Reports& reports) {
  Lines lines;
  for (const RankReport& r : reports) {
    if (!r.position.failure.empty()) lines.push_back(absl::StrCat(Who(r), ": ", r.position.failure));
  }
  return lines;
}

std::vector<int> Awaited(const Reports& reports, const RankReport& r, const CallRecord& call) {
  const auto group = r.position.groups.find(call.group);
  if (group == r.position.groups.end()) return {};
  const std::vector<int>& members = group->second.members;
  if (IsPointToPoint(call.operation)) return {members.at(call.root)};
  std::vector<int> awaited;
  for (const int member : members) {
    if (member >= static_cast<int>(reports.size())) continue;
    const auto& groups = reports[member].position.groups;
    const auto known = groups.find(call.group);
    if (known == groups.end() || known->second.collectives < call.sequence) awaited.push_back(member);
  }
  return awaited;
}

std::string MissingCall(const RankReport& waiting, const CallRecord& call) {
  if (call.operation == Operation::kReceive) {
    return absl::StrFormat("has not sent what rank %d awaits in %s", waiting.rank,
                           Describe(waiting.position, call));
  }
  if (call.operation == Operation::kSend) {
    return absl::StrFormat("has not received what rank %d sends in %s", waiting.rank,
                           Describe(waiting.position, call));
  }
  return absl::StrCat("has not entered ", Describe(waiting.position, call));
}

// False for a rank whose program has returned and that waits only in RunMain's final agreement.
bool WaitsInProgram(const RankReport& r) {
  const CallRecord* call = r.position.Waiting();
  return call != nullptr && GroupName(r.position, call->group) != kVerdictGroup;
}

Lines FindLate(const Reports& reports, double timeout_seconds, double now_seconds) {
  std::map<int, std::string> lines;  // by rank: one each
  for (const RankReport& r : reports) {
    const CallRecord* call = r.position.Waiting();
    if (call == nullptr || r.position.WaitingSeconds() < timeout_seconds) continue;
    for (const int rank : Awaited(reports, r, *call)) {
      const RankReport& late = reports[rank];
      // A rank that waits itself is not at fault: its own wait leads to the rank that is.
      if (WaitsInProgram(late) || (late.position.Waiting() != nullptr && !WaitsInProgram(r))) continue;
      lines.emplace(rank,
                    absl::StrCat(Who(late), " ", MissingCall(r, *call), "; ", LastSeen(late, now_seconds)));
    }
  }
  Lines ordered;
  for (auto& [rank, line] : lines) ordered.push_back(std::move(line));
  return ordered;
}

Lines FindCircle(const Reports& reports, double timeout_seconds) {
  Lines lines;
  for (const RankReport& r : reports) {
    const CallRecord* call = r.position.Waiting();
    if (call == nullptr || r.position.WaitingSeconds() < timeout_seconds) continue;
    std::string whom;
    for (const int rank : Awaited(reports, r, *call)) absl::StrAppend(&whom, whom.empty() ? "" : ", ", rank);
    lines.push_back(absl::StrFormat(
        "%s has waited %.1f s in %s at %s:%d for %s, in phase %s", Who(r), r.position.WaitingSeconds(),
        Describe(r.position, *call), call->file, call->line,
        whom.empty() ? "the transport (all ranks have entered)" : "rank " + whom + ", which waits too",
        call->phase));
  }
  return lines;
}

}  // namespace

Lines FindGuilty(const Reports& reports, double timeout_seconds, double now_seconds) {
  Lines gone = FindGone(reports, now_seconds);
  const bool failed = !FindFailed(reports).empty();
  const bool overdue = std::any_of(reports.begin(), reports.end(), [&](const RankReport& r) {
    return r.position.WaitingSeconds() >= timeout_seconds;
  });
  if (gone.empty() && !failed && !overdue) return {};
  // First, for it explains the rest: a transport may fail or crash over calls that do not fit together.
  if (Lines lines = FindMismatched(reports); !lines.empty()) return lines;
  // A rank that does not answer in time may only be slow, or wait in the call that the error of another has broken.
  const bool only_silent = std::none_of(reports.begin(), reports.end(), [](const RankReport& r) {
    return r.state != RankState::kAlive && r.state != RankState::kSilent;
  });
  if (failed && only_silent) {
    Lines lines = FindFailed(reports);
    lines.insert(lines.end(), gone.begin(), gone.end());
    return lines;
  }
  if (!gone.empty()) return gone;
  if (Lines lines = FindLate(reports, timeout_seconds, now_seconds); !lines.empty()) return lines;
  return FindCircle(reports, timeout_seconds);
}

}  // namespace plait::comm
