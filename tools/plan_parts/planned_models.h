// Describes the programs' models for parallel/plan: FLOPs, activations and parameters come from the models. Local.
#ifndef PLAIT_TOOLS_PLAN_PARTS_PLANNED_MODELS_H_
#define PLAIT_TOOLS_PLAN_PARTS_PLANNED_MODELS_H_

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>

#include "models/block_model.h"
#include "models/vit/options.h"
#include "parallel/plan/planned_model.h"
#include "tools/text_training/language_model.h"

namespace plait::planning {

// `sequence`: tokens per sequence. `master`: the type of master parameters.
parallel::PlannedModel Planned(const text_training::ModelOptions& options, std::int64_t sequence,
                               at::ScalarType master);
parallel::PlannedModel Planned(const vit::VitOptions& options, at::ScalarType master);

// A model with `blocks` blocks in memory (of text with a small vocabulary), and random samples for it: inputs and
// targets (samples, sequence) int64, or images (samples, channels, size, size) and classes (samples) int64.
std::unique_ptr<models::BlockModel> Made(const text_training::ModelOptions& options, std::int64_t blocks,
                                         at::ScalarType type);
std::unique_ptr<models::BlockModel> Made(const vit::VitOptions& options, std::int64_t blocks,
                                         at::ScalarType type);
models::Batch Batch(std::int64_t samples, std::int64_t sequence);
models::Batch Batch(const vit::VitOptions& options, std::int64_t samples, at::ScalarType type);

}  // namespace plait::planning

#endif  // PLAIT_TOOLS_PLAN_PARTS_PLANNED_MODELS_H_
