// The rows of a vision transformer for the table of models/summary.
//
//   std::puts(models::TableText(LayersOf(options, batch), {.depth = 1, .input_bytes = InputBytes(options, batch),
//                                                          .counting = models::Counting::kTorchinfo}).c_str());
#ifndef PLAIT_MODELS_VIT_SUMMARY_H_
#define PLAIT_MODELS_VIT_SUMMARY_H_

#include <cstdint>

#include "models/summary/model_table.h"
#include "models/vit/options.h"

namespace plait::vit {

// Layers as in timm's model, for `batch` images.
models::Layer LayersOf(const VitOptions& options, std::int64_t batch);

// Bytes of a batch of images.
std::int64_t InputBytes(const VitOptions& options, std::int64_t batch, std::int64_t element_bytes = 4);

}  // namespace plait::vit

#endif  // PLAIT_MODELS_VIT_SUMMARY_H_
