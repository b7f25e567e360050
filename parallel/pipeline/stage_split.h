// Which blocks, and which parameters, each pipeline stage has.
//
//   PLAIT_ASSIGN_OR_RETURN(const std::vector<StageRange> stages,
//                          SplitBlocks(CostsByParameters(model.units()), /*stages=*/4));
//   const std::vector<RankUnit> units = UnitsOfRank(model.units(), stages, schedule.rank_of_stage, pp.rank());
//   PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh with_ends, WithEnds(mesh, schedule.rank_of_stage));
//
// Blocks have the units that the model gives them, a root parameter is where its end of the model is
// (models::ParameterSpec::used_by). A parameter that both ends read is on both: its values are the same on the
// first and the last stage's rank, and its gradient is the sum of theirs, along an axis "pp_ends" of these two
// ranks (models::Placement::partial). Where one rank has both ends (one rank, zbv) there is nothing to sum.
// Local, except WithEnds.
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

// In any unit: seconds, floating point operations.
struct StageCosts {
  std::vector<double> blocks;
  double prologue = 0, epilogue = 0;
};

// The number of trained parameters of the whole model, whatever part of them the rank has, to which the work of products is
// proportional. Those that the prologue alone
// reads count nothing where their work is a look-up: 0 for the prologue.
StageCosts CostsByParameters(const std::vector<models::ParameterUnit>& units);

struct StageRange {
  int first = 0, count = 0;  // blocks
  bool prologue = false, epilogue = false;

  friend bool operator==(const StageRange&, const StageRange&) = default;
};

// Contiguous blocks for each stage, at least one, so that the most expensive stage costs as little as possible,
// and among such splits the squares of the costs. The first stage has the prologue, the last one the epilogue.
// InvalidArgument where there are fewer blocks than stages.
absl::StatusOr<std::vector<StageRange>> SplitBlocks(const StageCosts& costs, int stages);

// "blocks 0-3 | 4-7 | 8-10, head": what stands on each stage, for people.
std::string ToText(const std::vector<StageRange>& stages);

// A unit as the engine gets it, and the index of the model's unit that it is a part of.
struct RankUnit {
  models::ParameterUnit unit;
  std::size_t index = 0;
};

// In the model's order. Blocks are numbered anew from 0, in order. Root units come in parts: what this rank alone
// reads, and what both ends do.
std::vector<RankUnit> UnitsOfRank(const std::vector<models::ParameterUnit>& units,
                                  const std::vector<StageRange>& stages,
                                  const std::vector<int>& rank_of_stage, int rank);

// The mesh with the axis "pp_ends" where the ends are on two ranks; else the mesh. Collective.
absl::StatusOr<comm::DeviceMesh> WithEnds(const comm::DeviceMesh& mesh,
                                          const std::vector<int>& rank_of_stage);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PIPELINE_STAGE_SPLIT_H_
