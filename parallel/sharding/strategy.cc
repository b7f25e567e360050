#include "parallel/sharding/strategy.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plait::parallel {
namespace {

constexpr absl::string_view kNames[] = {"ddp", "zero1", "zero2", "fsdp"};

}  // namespace

absl::string_view Name(Strategy strategy) { return kNames[static_cast<int>(strategy)]; }

std::vector<std::string> StrategyNames() { return {std::begin(kNames), std::end(kNames)}; }

absl::StatusOr<Strategy> ParseStrategy(absl::string_view name) {
  if (name == "zero3") return Strategy::kFsdp;
  for (int i = 0; i < static_cast<int>(std::size(kNames)); ++i) {
    if (name == kNames[i]) return static_cast<Strategy>(i);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("strategy \"", name, "\": expected ", absl::StrJoin(kNames, " or "), " (zero3 is fsdp)"));
}

}  // namespace plait::parallel
