// Test tensors whose elements are a function of the tensor's name and the element's index, cut over ranks at random.
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

// Elements [begin, end), row-major. Floating-point elements are k / 8 with |k| <= 127, which all types represent
// exactly; each `version` has other elements.
std::vector<std::byte> ElementsOf(const TensorSpec& tensor, std::int64_t begin, std::int64_t end,
                                  int version);

// Pieces and the memory they point to. Movable; not copied.
struct OwnedPieces {
  std::vector<std::vector<std::byte>> values;
  std::vector<TensorPiece> pieces;

  void Add(const TensorSpec& tensor, std::int64_t begin, std::int64_t end, int version);
};

// The pieces of `rank` of `ranks`: each tensor is cut at random places into pieces, which are assigned to ranks at
// random. Every rank declares every tensor. The same `seed` gives the same cuts on all ranks.
OwnedPieces RandomPieces(const std::vector<TensorSpec>& tensors, int ranks, int rank, std::uint64_t seed,
                         int version);

// `cuts` + 1 ranges that together cover [0, elements), some of them empty.
struct Range {
  std::int64_t begin, end;
};
std::vector<Range> RandomCuts(std::int64_t elements, int cuts, std::uint64_t seed);

// "" if every tensor of the checkpoint, read in random ranges, equals ElementsOf; else the first difference.
std::string FirstDifference(Checkpoint& checkpoint, const std::vector<TensorSpec>& tensors,
                            std::uint64_t seed, int version);

}  // namespace plait::parallel::testing

#endif  // PLAIT_PARALLEL_CHECKPOINT_TESTING_TESTING_TENSORS_H_
