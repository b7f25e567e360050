#include "tools/doctor_checks/finding.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "comm/gathered_text.h"

namespace plait::doctor {
namespace {

// The same complaint of ranks on one host.
struct Group {
  Complaint complaint;
  std::string host;
  std::vector<int> ranks;
};

std::string Who(const Group& group) {
  return absl::StrCat(group.ranks.size() == 1 ? "rank " : "ranks ", comm::RankRanges(group.ranks), " (",
                      group.host, ")");
}

}  // namespace

const char* NameOf(Severity severity) {
  switch (severity) {
    case Severity::kOk:
      return "OK";
    case Severity::kWarning:
      return "WARNING";
    case Severity::kError:
      break;
  }
  return "ERROR";
}

Finding Judge(const std::string& name, const std::string& fine, const std::vector<RankFacts>& ranks,
              const std::function<std::optional<Complaint>(const RankFacts&)>& complaint_of) {
  std::vector<Group> groups;
  for (const RankFacts& rank : ranks) {
    const std::optional<Complaint> complaint = complaint_of(rank);
    if (!complaint.has_value()) continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& known) {
      return known.host == rank.host && known.complaint.what == complaint->what;
    });
    if (group == groups.end()) group = groups.insert(groups.end(), {*complaint, rank.host, {}});
    group->ranks.push_back(rank.rank);
  }
  Finding finding = {.severity = Severity::kOk, .name = name, .found = fine, .remedy = ""};
  for (const Group& group : groups) {
    const bool first = finding.severity == Severity::kOk;
    finding.found =
        absl::StrCat(first ? "" : absl::StrCat(finding.found, ", "), Who(group), ": ", group.complaint.what);
    if (group.complaint.severity <= finding.severity) continue;
    finding.severity = group.complaint.severity;
    finding.remedy = group.complaint.remedy;
  }
  return finding;
}

std::string Line(const Finding& finding) {
  return absl::StrFormat("%-8s %s: %s%s", NameOf(finding.severity), finding.name, finding.found,
                         finding.remedy.empty() ? "" : absl::StrCat("; ", finding.remedy));
}

std::string ToJson(const std::vector<Finding>& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"severity", NameOf(finding.severity)},
                    {"name", finding.name},
                    {"found", finding.found},
                    {"remedy", finding.remedy}});
  }
  return list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::StatusOr<std::vector<Finding>> FindingsFromJson(const std::string& text) {
  const auto list = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) return absl::InvalidArgumentError("the ranks' report is no JSON array");
  std::vector<Finding> findings;
  for (const auto& entry : list) {
    const std::string severity = entry.value("severity", "ERROR");
    findings.push_back({.severity = severity == "OK"        ? Severity::kOk
                                    : severity == "WARNING" ? Severity::kWarning
                                                            : Severity::kError,
                        .name = entry.value("name", ""),
                        .found = entry.value("found", ""),
                        .remedy = entry.value("remedy", "")});
  }
  return findings;
}

int ExitCode(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.severity == Severity::kError; })
             ? 1
             : 0;
}

}  // namespace plait::doctor
