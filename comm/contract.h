// A programming error ends the process, with one line that names the broken rule.
#ifndef PLAIT_COMM_CONTRACT_H_
#define PLAIT_COMM_CONTRACT_H_

#include "absl/strings/string_view.h"

namespace plait::comm {

[[noreturn]] void BreakContract(absl::string_view rule);

// The text is a literal: a call that holds costs one comparison.
inline void Require(bool holds, absl::string_view rule) {
  if (!holds) [[unlikely]] BreakContract(rule);
}

}  // namespace plait::comm

#endif  // PLAIT_COMM_CONTRACT_H_
