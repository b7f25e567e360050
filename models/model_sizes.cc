#include "models/model_sizes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plait::models {

absl::Status CheckHeld(const ModelSizes& sizes, const HeldNumbers& held) {
  if (sizes.layers > held.tensors) {
    return absl::InvalidArgumentError(absl::StrCat("the options ask for ", sizes.layers,
                                                   " layers, but the files hold ", held.tensors, " tensors"));
  }
  for (const std::vector<std::int64_t>& shape : sizes.shapes) {
    std::int64_t numbers = 1;
    const bool fits = std::all_of(shape.begin(), shape.end(), [&](std::int64_t size) {
      return !__builtin_mul_overflow(numbers, size, &numbers);
    });
    if (fits && numbers <= held.numbers) continue;
    return absl::InvalidArgumentError(absl::StrCat("the options ask for parameters of ",
                                                   absl::StrJoin(shape, " x "),
                                                   " numbers, but the files hold ", held.numbers));
  }
  return absl::OkStatus();
}

}  // namespace plait::models
