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
#include "parallel/checkpoint/tensor_piece.h"

namespace plait::parallel {

struct LayoutPiece {
  std::int64_t tensor = 0;  // index into Layout::tensors
  std::int64_t rank = 0;
  std::int64_t begin = 0, end = 0;  // elements, never empty
  std::int64_t offered = 0;         // index among what the rank offered

  friend bool operator==(const LayoutPiece&, const LayoutPiece&) = default;
};

struct Layout {
  std::int64_t step = 0;
  int ranks = 0;
  std::vector<TensorSpec> tensors;  // in the order in which rank 0 offers them, then rank 1 what is new, ...
  std::vector<LayoutPiece> pieces;  // ascending in (tensor, begin): of each tensor they follow one another

  // Those of one rank, in the same order.
  std::vector<LayoutPiece> PiecesOf(int rank) const;
  std::int64_t BytesOf(const LayoutPiece& piece) const;
  std::int64_t TotalBytes() const;
  // "model/x[0:12]": the piece's array in its rank's file.
  std::string ArrayOf(const LayoutPiece& piece) const;
};

// What one rank offers; `data` is not looked at.
struct Offer {
  std::int64_t step = 0;
  std::vector<TensorPiece> pieces;
};

// Local. INVALID_ARGUMENT, naming tensor, elements and ranks: an element that no piece has or several have,
// a tensor of several types or shapes, a range outside its tensor, names that cannot be used, ranks at
// different steps.
absl::StatusOr<Layout> MakeLayout(absl::Span<const Offer> by_rank);

// Collective.
absl::StatusOr<Layout> AgreeOnLayout(const comm::Communicator& comm, std::int64_t step,
                                     absl::Span<const TensorPiece> pieces);

// The part of MakeLayout that also holds of a layout read from a file: the pieces, each inside its tensor and
// in their order, cover every tensor exactly once.
absl::Status CheckCoverage(const Layout& layout);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_LAYOUT_H_
