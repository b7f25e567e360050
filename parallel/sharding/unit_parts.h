// Which parameters of a unit travel together as one flat buffer. Local.
#ifndef PLAIT_PARALLEL_SHARDING_UNIT_PARTS_H_
#define PLAIT_PARALLEL_SHARDING_UNIT_PARTS_H_

#include <cstdint>
#include <vector>

#include "models/block_model.h"
#include "parallel/sharding/flat_layout.h"
#include "parallel/sharding/strategy.h"

namespace plait::parallel {

using UnitPart = std::vector<const models::ParameterSpec*>;

// Of the trained parameters of `unit`, which outlives the result. Parameters of at least `part_bytes` are parts of
// their own, in root units and where the strategy keeps parameters unsharded (DataParallelOptions::part_bytes). Ranks
// along an axis that splits some parameters unequally have other layouts of these: so that they have one layout of
// those whose gradients they sum, these are parts of their own.
std::vector<UnitPart> PartsOf(const models::ParameterUnit& unit, Strategy strategy, std::int64_t part_bytes);

FlatLayout LayoutOf(const UnitPart& part, int ranks);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_UNIT_PARTS_H_
