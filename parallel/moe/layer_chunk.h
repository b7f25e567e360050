// A chunk of a rank's tokens on its way through the experts. For parallel/moe and its benchmark.
#ifndef PLAIT_PARALLEL_MOE_LAYER_CHUNK_H_
#define PLAIT_PARALLEL_MOE_LAYER_CHUNK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "parallel/moe/exchange.h"
#include "parallel/moe/placement.h"

namespace plait::moe {

// Hands out the rows of one rank to the ranks and slots that its placement says, in their order.
class RowSharing {
 public:
  RowSharing(const ExpertPlacement& placement, int source);
  // Of the next row to `expert`.
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
  RowNumbers choices;      // of each place: token * k + choice, from the chunk's first token on
  RowExchange exchange;    // of its tokens
  RowNumbers sorted = {};  // received places, sorted by slot
  RowNumbers rows = {};    // and the received rows that they are places of
  std::vector<std::int64_t> offsets = {};  // of each slot's places
};

// Collective: chunks of `experts` (tokens, k) of int64 on the host, -1: none.
std::vector<Chunk> MakeChunks(const ExchangeRanks& ranks, const ExpertPlacement& placement,
                              const at::Tensor& experts, int chunks);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_LAYER_CHUNK_H_
