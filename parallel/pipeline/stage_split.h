// Assigns blocks to pipeline stages, and parameters to ranks.
//
//   PLAIT_ASSIGN_OR_RETURN(const std::vector<StageRange> stages,
//                          SplitBlocks(CostsByParameters(model.units()), /*stages=*/4));
//   const std::vector<RankUnit> units = UnitsOfRank(model.units(), stages, schedule.rank_of_stage, pp.rank());
//   PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh with_ends, WithEnds(mesh, schedule.rank_of_stage));
//
// The units of blocks go with the blocks. A root parameter is on the rank of the end of the model that reads it
// (models::ParameterSpec::used_by). A parameter that both ends read (a tied embedding) is on both ranks, with the same
// values; its gradient is summed over the axis "pp_ends" of these two ranks (models::Placement::partial). If one rank
// has both ends (one rank, zbv), nothing is summed. Local, except WithEnds.
#ifndef PLAIT_PARALLEL_PIPELINE_STAGE_SPLIT_H_
#define PLAIT_PARALLEL_PIPELINE_STAGE_SPLIT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/device_mesh.h"
#include "models/block_model.h"

namespace plait::parallel {

inline constexpr char kEndsAxis[] = "pp_ends";

// In any unit, for example seconds or floating-point operations.
struct StageCosts {
  std::vector<double> blocks;
  double prologue = 0, epilogue = 0;
};

// Costs proportional to the work of matrix products: the numbers of parameters of blocks (without buffers) and of the
// epilogue, tied ones included; of whole tensors, whatever part the rank has. Parameters that only the prologue reads
// count 0, because embeddings are look-ups.
StageCosts CostsByParameters(const std::vector<models::ParameterUnit>& units);

struct StageRange {
  int first = 0, count = 0;  // blocks
  bool prologue = false, epilogue = false;

  friend bool operator==(const StageRange&, const StageRange&) = default;
};

// Assigns contiguous blocks to each stage, at least one, so that the most expensive stage costs as little as possible;
// among such splits, minimizes the sum of squared costs. The first stage has the prologue, the last one the epilogue.
// INVALID_ARGUMENT if there are fewer blocks than stages.
absl::StatusOr<std::vector<StageRange>> SplitBlocks(const StageCosts& costs, int stages);

// "blocks 0-3 | 4-7 | 8-10": the blocks of each stage.
std::string ToText(const std::vector<StageRange>& stages);

// A unit for the engine of a rank, and the index of the model's unit that it is a part of.
struct RankUnit {
  models::ParameterUnit unit;
  std::size_t index = 0;
};

// Returns the units of `rank` in the model's order, with its blocks renumbered from 0. Root units are split into the
// parameters that only this rank reads and those that both ends read.
std::vector<RankUnit> UnitsOfRank(const std::vector<models::ParameterUnit>& units,
                                  const std::vector<StageRange>& stages,
                                  const std::vector<int>& rank_of_stage, int rank);

// Collective. Returns `mesh`, with an additional axis "pp_ends" if the ends of the model are on two ranks. Errors are
// those of DeviceMesh::WithSubset.
absl::StatusOr<comm::DeviceMesh> WithEnds(const comm::DeviceMesh& mesh,
                                          const std::vector<int>& rank_of_stage);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PIPELINE_STAGE_SPLIT_H_
