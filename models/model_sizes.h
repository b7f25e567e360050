// Whether weight files can hold the parameters of a model. Checked before the model is allocated, because its sizes may
// come from an untrusted config.json.
//
//   PLAIT_RETURN_IF_ERROR(CheckHeld(SizesOf(options), {.tensors = 148, .numbers = 124439808}));
#ifndef PLAIT_MODELS_MODEL_SIZES_H_
#define PLAIT_MODELS_MODEL_SIZES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace plait::models {

struct ModelSizes {
  std::int64_t layers = 0;  // each has at least one parameter
  // Shapes of the large parameters, stacked over the layers: (n_layer, ...). All sizes are positive; their product may
  // overflow int64.
  std::vector<std::vector<std::int64_t>> shapes;
};

struct HeldNumbers {
  std::int64_t tensors = 0, numbers = 0;  // tensors in the files, and their elements
};

// InvalidArgument, without a path, if the model has more layers than the files have tensors, or a stacked parameter
// larger than all files together.
absl::Status CheckHeld(const ModelSizes& sizes, const HeldNumbers& held);

}  // namespace plait::models

#endif  // PLAIT_MODELS_MODEL_SIZES_H_
