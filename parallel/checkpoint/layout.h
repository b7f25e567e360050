// Which rank holds which elements of which tensor; all ranks agree on it before anything is written.
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
  std::int64_t offered = 0;  // index among the pieces that the rank passed

  std::int64_t elements() const { return range.end - range.begin; }
  friend bool operator==(const LayoutPiece&, const LayoutPiece&) = default;
};

struct Layout {
  std::int64_t step = 0;
  int ranks = 0;
  std::vector<TensorSpec> tensors;  // in rank 0's order, then those that only rank 1 names, ...
  std::vector<LayoutPiece> pieces;  // sorted by tensor, then box, then begin (PrecedesInLayout)

  // The pieces of one rank, in the same order.
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

// The pieces of one rank; `data` is not read.
struct Offer {
  std::int64_t step = 0;
  std::vector<TensorPiece> pieces;
};

// Local. INVALID_ARGUMENT, naming tensor, elements and ranks, if an element is in no piece or in several, ranks
// disagree on a tensor's type or shape, a box or range lies outside its tensor, a name or shape cannot be stored
// (CheckTensors), or ranks save different steps.
absl::StatusOr<Layout> MakeLayout(absl::Span<const Offer> by_rank);

// Collective over `comm`: MakeLayout of all ranks' pieces.
absl::StatusOr<Layout> AgreeOnLayout(const comm::Communicator& comm, std::int64_t step,
                                     absl::Span<const TensorPiece> pieces);

// INVALID_ARGUMENT if a tensor's name cannot be used in an HDF5 file, occurs twice, is also the name of a group, or has
// more than kLongestPath bytes with its group or more than kMostGroups groups; or if a shape has more than
// kMostDimensions or its number of elements overflows.
inline constexpr std::size_t kMostDimensions = 32;  // HDF5's limit
inline constexpr std::size_t kLongestPath = 1024, kMostGroups = 64;
absl::Status CheckTensors(const Layout& layout);

// INVALID_ARGUMENT unless the pieces hold every element of every tensor exactly once. The pieces must lie inside their
// tensors and be sorted (PrecedesInLayout). Also for a layout that was read from a file.
absl::Status CheckCoverage(const Layout& layout);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_LAYOUT_H_
