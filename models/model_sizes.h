// Whether files can hold the parameters of a model, asked before memory is taken for it: its sizes may come from a file.
//
//   PLAIT_RETURN_IF_ERROR(CheckHeld(SizesOf(options), {.tensors = 148, .numbers = 124439808}));
#ifndef PLAIT_MODELS_MODEL_SIZES_H_
#define PLAIT_MODELS_MODEL_SIZES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace plait::models {

struct ModelSizes {
  std::int64_t layers = 0;  // each of one parameter or more
  // Of its large parameters, those of all layers as one. Of positive lengths, whose product need not fit 63 bits.
  std::vector<std::vector<std::int64_t>> shapes;
};

struct HeldNumbers {
  std::int64_t tensors = 0, numbers = 0;
};

// InvalidArgument, without a path: a layer or a parameter that the files have no room for.
absl::Status CheckHeld(const ModelSizes& sizes, const HeldNumbers& held);

}  // namespace plait::models

#endif  // PLAIT_MODELS_MODEL_SIZES_H_
