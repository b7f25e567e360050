// What a check found, and how it is shown.
//
//   OK       memory: at least 11.2 GiB for each rank
//   WARNING  gnuplot: rank 0 (node7): gnuplot is not on the PATH; install gnuplot-nox for plots; runs go on without
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

// Finding `name` with the severity and remedy of the worst complaint, and each complaint with its ranks and their host:
// "ranks 0-3 (node7): 100 MiB available for each". OK with the text `fine` if no rank complains.
Finding Judge(const std::string& name, const std::string& fine, const std::vector<RankFacts>& ranks,
              const std::function<std::optional<Complaint>(const RankFacts&)>& complaint_of);

// "WARNING  memory: ...; ..."
std::string Line(const Finding& finding);

// [{"severity": "OK", "name": "memory", "found": "...", "remedy": ""}, ...]
std::string ToJson(const std::vector<Finding>& findings);
// INVALID_ARGUMENT if `text` is not a JSON array, such as a truncated report.
absl::StatusOr<std::vector<Finding>> FindingsFromJson(const std::string& text);

// 1 if there is an ERROR, else 0.
int ExitCode(const std::vector<Finding>& findings);

}  // namespace plait::doctor

#endif  // PLAIT_TOOLS_DOCTOR_CHECKS_FINDING_H_
