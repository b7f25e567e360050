// The rows of a Cnn for the table of models/summary.
//
//   std::puts(models::TableText(LayersOf({}, batch), {.input_bytes = 4 * 28 * 28 * batch}).c_str());
#ifndef PLAIT_MODELS_CNN_SUMMARY_H_
#define PLAIT_MODELS_CNN_SUMMARY_H_

#include <cstdint>

#include "models/cnn/cnn.h"
#include "models/summary/model_table.h"

namespace plait::cnn {

// Layers in the order of the forward pass, for images (batch, 1, rows, columns).
models::Layer LayersOf(const CnnOptions& options, std::int64_t batch);

}  // namespace plait::cnn

#endif  // PLAIT_MODELS_CNN_SUMMARY_H_
