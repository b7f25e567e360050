// A chunk of a rank's tokens and its exchange. For parallel/moe and its benchmark.
#ifndef PLAIT_PARALLEL_MOE_LAYER_CHUNK_H_
#define PLAIT_PARALLEL_MOE_LAYER_CHUNK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "parallel/moe/exchange.h"
#include "parallel/moe/placement.h"

namespace plait::moe {

// Assigns the rows of rank `source`, in order, to the ranks and slots of the placement's shares.
class RowSharing {
 public:
  RowSharing(const ExpertPlacement& placement, int source);
  // Rank and slot of the next row to `expert`.
  void Next(int expert, std::int32_t* rank, std::int32_t* slot);

 private:
  struct Position {
    std::size_t share = 0;
    std::int64_t rows = 0;
  };
  const ExpertPlacement& placement_;
  int source_;
  std::vector<Position> positions_;  // by expert
};

struct Chunk {
  std::int64_t first = 0, tokens = 0;
  RowNumbers choices;      // by place: token * k + choice, tokens counted from the chunk's first
  RowExchange exchange;    // of its tokens
  RowNumbers sorted = {};  // received places, sorted by slot
  RowNumbers rows = {};    // their received rows, in the same order
  std::vector<std::int64_t> offsets = {};  // of each slot in `sorted`; slots + 1
};

// Collective over the group. `experts` (tokens, k) int64 on the host, -1: none.
std::vector<Chunk> MakeChunks(const ExchangeRanks& ranks, const ExpertPlacement& placement,
                              const at::Tensor& experts, int chunks);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_LAYER_CHUNK_H_
