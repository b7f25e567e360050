#include "comm/launch/machine_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace plait::comm {
namespace {

struct Named {
  absl::string_view text;
  const char* machine;
};

constexpr Named kSystems[] = {{"frontier", "Frontier"}, {"perlmutter", "Perlmutter"}, {"polaris", "Polaris"},
                              {"aurora", "Aurora"},     {"sunspot", "SunSpot"},       {"sophia", "Sophia"},
                              {"sirius", "Sirius"}};

constexpr Named kPrefixes[] = {{"frontier", "Frontier"}, {"sophia", "Sophia"}, {"theta", "ThetaGPU"},
                               {"x1", "SunSpot"},        {"x3", "Polaris"},    {"x4", "Aurora"},
                               {"nid", "Perlmutter"}};

// x1 to x4 and nid begin the names of Cray's nodes, x3101c0s13b0n0 or nid001234: a digit follows.
bool HasPrefix(absl::string_view host, absl::string_view prefix) {
  if (!absl::StartsWith(host, prefix)) return false;
  if (prefix != "nid" && prefix[0] != 'x') return true;
  return host.size() > prefix.size() && absl::ascii_isdigit(host[prefix.size()]);
}

}  // namespace

std::string MachineName(const Lookup& lookup, const std::string& host) {
  bool elsewhere = false;  // the site has a name for it that is not in the table
  for (const char* variable : {"NERSC_HOST", "LMOD_SYSTEM_NAME", "SLURM_CLUSTER_NAME"}) {
    const char* value = lookup(variable);
    if (value == nullptr) continue;
    const auto* known = std::find_if(std::begin(kSystems), std::end(kSystems), [&](const Named& system) {
      return absl::EqualsIgnoreCase(system.text, value);
    });
    if (known != std::end(kSystems)) return known->machine;
    elsewhere = true;
  }
  if (elsewhere) return host;
  const auto* found = std::find_if(std::begin(kPrefixes), std::end(kPrefixes),
                                   [&](const Named& entry) { return HasPrefix(host, entry.text); });
  if (found == std::end(kPrefixes)) return host;
  const char* submitted_on = lookup("PBS_O_HOST");
  const bool sirius =
      found->text == "x3" && submitted_on != nullptr && absl::StartsWith(submitted_on, "sirius");
  return sirius ? "Sirius" : found->machine;
}

}  // namespace plait::comm
