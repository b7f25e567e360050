#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "parallel/activation_checkpoint/activation_checkpoint.h"

namespace plait::parallel {
namespace {

// Whether `name` matches `pattern`, in which * matches any characters.
bool Fits(absl::string_view pattern, absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(pattern, '*');
  if (parts.size() == 1) return pattern == name;
  if (!absl::ConsumePrefix(&name, parts.front())) return false;
  for (std::size_t i = 1; i + 1 < parts.size(); ++i) {
    const std::size_t at = name.find(parts[i]);
    if (at == absl::string_view::npos) return false;
    name.remove_prefix(at + parts[i].size());
  }
  return absl::EndsWith(name, parts.back());
}

absl::Status PickEvery(absl::string_view number, std::vector<bool>& picked) {
  int step = 0;
  if (!absl::SimpleAtoi(number, &step) || step < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("activation checkpoints \"every-", number, "\": expected an integer of at least 1"));
  }
  for (std::size_t block = 0; block < picked.size(); block += step) picked[block] = true;
  return absl::OkStatus();
}

absl::Status PickNamed(absl::string_view pattern, const std::vector<std::string>& names,
                       std::vector<bool>& picked) {
  bool any = false;
  for (std::size_t block = 0; block < names.size(); ++block) {
    if (!Fits(pattern, names[block])) continue;
    picked[block] = any = true;
  }
  if (any) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("activation checkpoints \"", pattern,
                                                 "\": expected none, full, every-K or blocks among ",
                                                 absl::StrJoin(names, ", ")));
}

}  // namespace

absl::StatusOr<CheckpointPolicy> CheckpointPolicy::Parse(absl::string_view text,
                                                         const std::vector<std::string>& block_names) {
  CheckpointPolicy policy;
  policy.picked_.assign(block_names.size(), text == "full");
  if (text == "none" || text == "full") return policy;
  absl::Status status;
  if (absl::ConsumePrefix(&text, "every-")) {
    status = PickEvery(text, policy.picked_);
  } else {
    for (const absl::string_view pattern : absl::StrSplit(text, ',')) {
      status.Update(PickNamed(pattern, block_names, policy.picked_));
    }
  }
  if (!status.ok()) return status;
  return policy;
}

std::size_t CheckpointPolicy::count() const { return std::count(picked_.begin(), picked_.end(), true); }

models::BlockState CheckpointPolicy::Forward(std::size_t index, const std::shared_ptr<models::Block>& block,
                                             const models::BlockState& input,
                                             const models::BlockContext& context) const {
  if (!Picks(index)) return block->Forward(input, context);
  return CheckpointActivations(
      [block, context](const models::BlockState& x, bool final) {
        models::BlockContext own = context;
        own.final = context.final && final;
        return block->Forward(x, own);
      },
      input);
}

}  // namespace plait::parallel
