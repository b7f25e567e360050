// Which parameters of a unit share a flat buffer. Local.
#ifndef PLAIT_PARALLEL_SHARDING_UNIT_PARTS_H_
#define PLAIT_PARALLEL_SHARDING_UNIT_PARTS_H_

#include <cstdint>
#include <vector>

#include "models/block_model.h"
#include "parallel/sharding/flat_layout.h"
#include "parallel/sharding/strategy.h"

namespace plait::parallel {

using UnitPart = std::vector<const models::ParameterSpec*>;

// Groups the trained parameters of `unit`, which must outlive the result, one group per flat buffer. Parameters of at
// least `part_bytes` (counting the whole tensor, not the local part) are parts of their own, in root units and, unless
// the strategy shards parameters, in blocks (DataParallelOptions::part_bytes). If the unit has split parameters, those
// with partial gradients are separate parts too: ranks may have different layouts of split parameters, but must have
// the same layout of gradients that they sum.
std::vector<UnitPart> PartsOf(const models::ParameterUnit& unit, Strategy strategy, std::int64_t part_bytes);

// `ranks`: along the shard axis.
FlatLayout LayoutOf(const UnitPart& part, int ranks);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_UNIT_PARTS_H_
