// The programs' models as plans see them: their FLOPs, activations and parameters are the models' own. Local.
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

// `master`: the type of the masters. Of sequences of so many tokens.
parallel::PlannedModel Planned(const text_training::ModelOptions& options, std::int64_t sequence,
                               at::ScalarType master);
parallel::PlannedModel Planned(const vit::VitOptions& options, at::ScalarType master);

// A model of so many blocks in memory, of text with a small vocabulary, and random samples for it.
std::unique_ptr<models::BlockModel> Made(const text_training::ModelOptions& options, std::int64_t blocks,
                                         at::ScalarType type);
std::unique_ptr<models::BlockModel> Made(const vit::VitOptions& options, std::int64_t blocks,
                                         at::ScalarType type);
models::Batch Batch(std::int64_t samples, std::int64_t sequence);
models::Batch Batch(const vit::VitOptions& options, std::int64_t samples, at::ScalarType type);

}  // namespace plait::planning

#endif  // PLAIT_TOOLS_PLAN_PARTS_PLANNED_MODELS_H_
