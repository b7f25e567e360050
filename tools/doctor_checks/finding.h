// What a check found, and how it is shown.
//
//   OK       memory: at least 11.2 GiB for a rank
//   WARNING  gnuplot: not on the PATH of rank 3 (node7); install gnuplot-nox for plots
#ifndef PLAIT_TOOLS_DOCTOR_CHECKS_FINDING_H_
#define PLAIT_TOOLS_DOCTOR_CHECKS_FINDING_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/doctor_checks/rank_facts.h"

namespace plait::doctor {

enum class Severity { kOk, kWarning, kError };
const char* NameOf(Severity severity);  // "OK", "WARNING", "ERROR"

struct Finding {
  Severity severity = Severity::kOk;
  std::string name;    // of the check
  std::string found;   // one line
  std::string remedy;  // what to do; empty if nothing
};

// What is wrong with one rank.
struct Complaint {
  Severity severity = Severity::kWarning;
  std::string what;
  std::string remedy;
};

// The worst complaint's severity and remedy, and each complaint with the ranks and the host that have it:
// "2.1 GiB for each of ranks 0-3 (node7)". `fine` if no rank complains.
Finding Judge(const std::string& name, const std::string& fine, const std::vector<RankFacts>& ranks,
              const std::function<std::optional<Complaint>(const RankFacts&)>& complaint_of);

// "WARNING  memory: ...; ..."
std::string Line(const Finding& finding);

// [{"severity": "OK", "name": "memory", "found": "...", "remedy": ""}, ...]
std::string ToJson(const std::vector<Finding>& findings);
// INVALID_ARGUMENT for a text that ToJson has not written.
absl::StatusOr<std::vector<Finding>> FindingsFromJson(const std::string& text);

// 1 if there is an ERROR, else 0.
int ExitCode(const std::vector<Finding>& findings);

}  // namespace plait::doctor

#endif  // PLAIT_TOOLS_DOCTOR_CHECKS_FINDING_H_
