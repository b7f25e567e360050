// A mixture of experts in BlockModel::Description() and in the table of models/summary.
#ifndef PLAIT_MODELS_MOE_SUMMARY_H_
#define PLAIT_MODELS_MOE_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/moe/options.h"
#include "models/summary/model_table.h"

namespace plait::moe {

// "MoeMlp(\n ... )"; all lines but the first are indented by `indent`.
std::string DescriptionOf(const MoeOptions& options, std::int64_t width, const std::string& indent);

// `output_shape` (..., width). Mult-adds count the k experts that a token uses.
models::Layer LayerOf(const MoeOptions& options, const std::vector<std::int64_t>& output_shape);

}  // namespace plait::moe

#endif  // PLAIT_MODELS_MOE_SUMMARY_H_
