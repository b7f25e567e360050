// Which rank holds which elements of which tensor: what all ranks agree on before anything is written.
//
//   PLAIT_ASSIGN_OR_RETURN(const Layout layout, AgreeOnLayout(comm, step, pieces));
//
// Every rank gets the same layout or the same error: the pieces of all ranks are gathered and checked by
// each of them.
#ifndef PLAIT_PARALLEL_CHECKPOINT_LAYOUT_H_
#define PLAIT_PARALLEL_CHECKPOINT_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "comm/communicator.h"
#include "parallel/checkpoint/box_range.h"
#include "parallel/checkpoint/tensor_piece.h"

namespace plait::parallel {

struct LayoutPiece {
  std::int64_t tensor = 0;  // index into Layout::tensors
  std::int64_t rank = 0;
  BoxRange range = {};       // never empty; normalized (box_range.h)
  std::int64_t offered = 0;  // index among what the rank offered

  std::int64_t elements() const { return range.end - range.begin; }
  friend bool operator==(const LayoutPiece&, const LayoutPiece&) = default;
};

struct Layout {
  std::int64_t step = 0;
  int ranks = 0;
  std::vector<TensorSpec> tensors;  // in the order in which rank 0 offers them, then rank 1 what is new, ...
  std::vector<LayoutPiece> pieces;  // sorted by tensor, then box, then begin (PrecedesInLayout)

  // Those of one rank, in the same order.
  std::vector<LayoutPiece> PiecesOf(int rank) const;
  absl::Span<const LayoutPiece> PiecesOfTensor(std::int64_t tensor) const;
  std::int64_t BytesOf(const LayoutPiece& piece) const;
  std::int64_t TotalBytes() const;
  // "model/x[0:12]", "model/x[0:3, 4:8][0:12]" in a box: the piece's array in its rank's file.
  std::string ArrayOf(const LayoutPiece& piece) const;
  // Elements of the piece's box, for messages: "[0, 12)", "[0, 12) of box [0:3, 4:8]".
  std::string TextOf(const LayoutPiece& piece, std::int64_t begin, std::int64_t end) const;
};

// The order of Layout::pieces.
bool PrecedesInLayout(const LayoutPiece& a, const LayoutPiece& b);

// What one rank offers; `data` is not read.
struct Offer {
  std::int64_t step = 0;
  std::vector<TensorPiece> pieces;
};

// Local. INVALID_ARGUMENT, naming tensor, elements and ranks: an element that no piece has or several have,
// a tensor of several types or shapes, a box or range outside its tensor, names that cannot be used, ranks at
// different steps.
absl::StatusOr<Layout> MakeLayout(absl::Span<const Offer> by_rank);

// Collective.
absl::StatusOr<Layout> AgreeOnLayout(const comm::Communicator& comm, std::int64_t step,
                                     absl::Span<const TensorPiece> pieces);

// Likewise for the tensors: names that files can have, each once, and shapes of at most kMostDimensions whose elements
// can be counted.
inline constexpr std::size_t kMostDimensions = 32;  // HDF5's limit
absl::Status CheckTensors(const Layout& layout);

// The part of MakeLayout that also applies to a layout read from a file: the pieces, each inside its tensor
// and in order, hold every element of every tensor exactly once.
absl::Status CheckCoverage(const Layout& layout);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_LAYOUT_H_
