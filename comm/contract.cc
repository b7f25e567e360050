#include "comm/contract.h"

#include <cstdio>
#include <cstdlib>

namespace plait::comm {

void BreakContract(absl::string_view rule) {
  std::fprintf(stderr, "comm: broken contract: %.*s\n", static_cast<int>(rule.size()), rule.data());
  std::abort();
}

}  // namespace plait::comm
