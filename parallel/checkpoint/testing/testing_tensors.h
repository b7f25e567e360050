// Tensors whose every element is known from its name and number, cut over ranks at random: what tests save,
// and what they compare with.
#ifndef PLAIT_PARALLEL_CHECKPOINT_TESTING_TESTING_TENSORS_H_
#define PLAIT_PARALLEL_CHECKPOINT_TESTING_TESTING_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/tensor_piece.h"

namespace plait::parallel::testing {

// All types; 0 to 4 dimensions; no elements, one element, and more than a chunk of 1 MiB.
std::vector<TensorSpec> ManyTensors();

// Elements [begin, end), row-major. Of floating-point types k / 8 with |k| <= 127, which all of them hold
// exactly; `version` gives other elements.
std::vector<std::byte> ElementsOf(const TensorSpec& tensor, std::int64_t begin, std::int64_t end,
                                  int version);

// Pieces and the memory they point to. Movable; not copied.
struct OwnedPieces {
  std::vector<std::vector<std::byte>> values;
  std::vector<TensorPiece> pieces;

  void Add(const TensorSpec& tensor, std::int64_t begin, std::int64_t end, int version);
};

// What `rank` of `ranks` owns when each tensor is cut into a few pieces at random places, dealt out at
// random. Every rank knows of every tensor. The same `seed` gives the same cuts on all ranks.
OwnedPieces RandomPieces(const std::vector<TensorSpec>& tensors, int ranks, int rank, std::uint64_t seed,
                         int version);

// Ranges that together cover [0, elements), some of them empty.
struct Range {
  std::int64_t begin, end;
};
std::vector<Range> RandomCuts(std::int64_t elements, int cuts, std::uint64_t seed);

// "" if every tensor of the checkpoint, read in random ranges, holds what ElementsOf says; else what differs.
std::string FirstDifference(Checkpoint& checkpoint, const std::vector<TensorSpec>& tensors,
                            std::uint64_t seed, int version);

}  // namespace plait::parallel::testing

#endif  // PLAIT_PARALLEL_CHECKPOINT_TESTING_TESTING_TENSORS_H_
