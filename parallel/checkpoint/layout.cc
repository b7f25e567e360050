#include "parallel/checkpoint/layout.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "parallel/checkpoint/gathered_bytes.h"

namespace plait::parallel {
namespace {

std::string RangeText(std::int64_t begin, std::int64_t end) {
  return absl::StrCat("[", begin, ", ", end, ")");
}

bool IsUsable(absl::string_view part) {
  return !part.empty() && part != "." && part != ".." && part.find('\0') == absl::string_view::npos;
}

absl::Status CheckName(const TensorSpec& tensor) {
  const std::vector<absl::string_view> groups = absl::StrSplit(tensor.group, '/');
  bool usable = IsUsable(tensor.name) && !absl::StrContains(tensor.name, '/') && groups[0] != "plait";
  for (const absl::string_view group : groups) usable = usable && IsUsable(group);
  if (usable) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("\"", PathOf(tensor), "\" cannot name a tensor"));
}

// Sizes whose product leaves 63 bits would pass for small ones.
absl::Status CheckShape(const TensorSpec& tensor) {
  std::int64_t left = std::numeric_limits<std::int64_t>::max() / 8;
  for (const std::int64_t size : tensor.shape) {
    if (size < 0 || (size > 0 && size > left)) {
      return absl::InvalidArgumentError(
          absl::StrCat(PathOf(tensor), ": ", TypeAndShapeOf(tensor), " is no shape of a tensor"));
    }
    if (size > 0) left /= size;
  }
  return absl::OkStatus();
}

absl::Status CheckPiece(const TensorPiece& piece, int rank) {
  PLAIT_RETURN_IF_ERROR(CheckName(piece.tensor));
  PLAIT_RETURN_IF_ERROR(CheckShape(piece.tensor));
  const std::int64_t elements = ElementsOf(piece.tensor);
  if (0 <= piece.begin && piece.begin <= piece.end && piece.end <= elements) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(PathOf(piece.tensor), ": rank ", rank, " offers elements ",
                                                 RangeText(piece.begin, piece.end), " of ", elements));
}

// No tensor has the path of a group of others: a file cannot have both.
absl::Status CheckGroups(const Layout& layout) {
  std::set<std::string> groups;
  for (const TensorSpec& tensor : layout.tensors) {
    for (std::size_t slash = tensor.group.find('/'); slash != std::string::npos;
         slash = tensor.group.find('/', slash + 1)) {
      groups.insert(tensor.group.substr(0, slash));
    }
    groups.insert(tensor.group);
  }
  for (const TensorSpec& tensor : layout.tensors) {
    if (groups.count(PathOf(tensor)) == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(PathOf(tensor), " names a tensor and a group of tensors"));
  }
  return absl::OkStatus();
}

// Collects tensors in order of appearance.
class LayoutBuilder {
 public:
  explicit LayoutBuilder(Layout& layout) : layout_(layout) {}

  absl::Status Add(const TensorPiece& piece, int rank, std::int64_t offered) {
    PLAIT_RETURN_IF_ERROR(CheckPiece(piece, rank));
    const auto [found, is_new] =
        known_.try_emplace(PathOf(piece.tensor), static_cast<std::int64_t>(layout_.tensors.size()), rank);
    const auto [index, first_rank] = found->second;
    if (is_new) layout_.tensors.push_back(piece.tensor);
    const TensorSpec& known = layout_.tensors[index];
    if (!(known == piece.tensor)) {
      return absl::InvalidArgumentError(absl::StrCat(PathOf(known), " is ", TypeAndShapeOf(known),
                                                     " on rank ", first_rank, " and ",
                                                     TypeAndShapeOf(piece.tensor), " on rank ", rank));
    }
    if (piece.begin < piece.end) layout_.pieces.push_back({index, rank, piece.begin, piece.end, offered});
    return absl::OkStatus();
  }

 private:
  Layout& layout_;
  std::map<std::string, std::pair<std::int64_t, int>> known_;  // path -> index, rank that named it first
};

absl::Status NotCovered(const TensorSpec& tensor, std::int64_t begin, std::int64_t end) {
  return absl::InvalidArgumentError(absl::StrCat(PathOf(tensor), ", ", TypeAndShapeOf(tensor), ": elements ",
                                                 RangeText(begin, end), " are on no rank"));
}

std::string OfferBytes(std::int64_t step, absl::Span<const TensorPiece> pieces) {
  ByteWriter writer;
  writer.Number(step);
  writer.Number(static_cast<std::int64_t>(pieces.size()));
  for (const TensorPiece& piece : pieces) {
    writer.Text(piece.tensor.group);
    writer.Text(piece.tensor.name);
    writer.Number(static_cast<std::int64_t>(piece.tensor.dtype));
    writer.Number(static_cast<std::int64_t>(piece.tensor.shape.size()));
    for (const std::int64_t size : piece.tensor.shape) writer.Number(size);
    writer.Number(piece.begin);
    writer.Number(piece.end);
  }
  return writer.bytes();
}

Offer OfferFrom(const std::string& bytes) {
  ByteReader reader(bytes);
  Offer offer;
  offer.step = reader.Number();
  offer.pieces.resize(reader.Number());
  for (TensorPiece& piece : offer.pieces) {
    piece.tensor.group = reader.Text();
    piece.tensor.name = reader.Text();
    piece.tensor.dtype = static_cast<data::DType>(reader.Number());
    piece.tensor.shape.resize(reader.Number());
    for (std::int64_t& size : piece.tensor.shape) size = reader.Number();
    piece.begin = reader.Number();
    piece.end = reader.Number();
  }
  return offer;
}

}  // namespace

std::vector<LayoutPiece> Layout::PiecesOf(int rank) const {
  std::vector<LayoutPiece> own;
  std::copy_if(pieces.begin(), pieces.end(), std::back_inserter(own),
               [&](const LayoutPiece& piece) { return piece.rank == rank; });
  return own;
}

std::int64_t Layout::BytesOf(const LayoutPiece& piece) const {
  return (piece.end - piece.begin) * data::ElementBytes(tensors[piece.tensor].dtype);
}

std::int64_t Layout::TotalBytes() const {
  std::int64_t bytes = 0;
  for (const LayoutPiece& piece : pieces) bytes += BytesOf(piece);
  return bytes;
}

std::string Layout::ArrayOf(const LayoutPiece& piece) const {
  return absl::StrCat(PathOf(tensors[piece.tensor]), "[", piece.begin, ":", piece.end, "]");
}

absl::Status CheckCoverage(const Layout& layout) {
  auto piece = layout.pieces.begin();
  for (std::int64_t t = 0; t < static_cast<std::int64_t>(layout.tensors.size()); ++t) {
    const TensorSpec& tensor = layout.tensors[t];
    std::int64_t covered = 0;
    for (; piece != layout.pieces.end() && piece->tensor == t; covered = piece->end, ++piece) {
      if (piece->begin > covered) return NotCovered(tensor, covered, piece->begin);
      if (piece->begin == covered) continue;
      // Pieces lie inside their tensor, so that one before it ends at `covered`.
      return absl::InvalidArgumentError(absl::StrCat(
          PathOf(tensor), ": elements ", RangeText(piece->begin, std::min(covered, piece->end)),
          " are on rank ", (piece - 1)->rank, " and on rank ", piece->rank, "; one alone may offer them"));
    }
    if (covered < ElementsOf(tensor)) return NotCovered(tensor, covered, ElementsOf(tensor));
  }
  return absl::OkStatus();
}

absl::StatusOr<Layout> MakeLayout(absl::Span<const Offer> by_rank) {
  Layout layout;
  layout.ranks = static_cast<int>(by_rank.size());
  layout.step = by_rank[0].step;
  LayoutBuilder builder(layout);
  for (int rank = 0; rank < layout.ranks; ++rank) {
    const Offer& offer = by_rank[rank];
    if (offer.step != layout.step || offer.step < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, " saves step ", offer.step, " where rank 0 saves step ", layout.step));
    }
    for (std::size_t i = 0; i < offer.pieces.size(); ++i) {
      PLAIT_RETURN_IF_ERROR(builder.Add(offer.pieces[i], rank, static_cast<std::int64_t>(i)));
    }
  }
  std::stable_sort(layout.pieces.begin(), layout.pieces.end(),
                   [](const LayoutPiece& a, const LayoutPiece& b) {
                     return std::tie(a.tensor, a.begin) < std::tie(b.tensor, b.begin);
                   });
  PLAIT_RETURN_IF_ERROR(CheckGroups(layout));
  PLAIT_RETURN_IF_ERROR(CheckCoverage(layout));
  return layout;
}

absl::StatusOr<Layout> AgreeOnLayout(const comm::Communicator& comm, std::int64_t step,
                                     absl::Span<const TensorPiece> pieces) {
  std::vector<Offer> offers;
  for (const std::string& bytes : GatherBytes(comm, OfferBytes(step, pieces))) {
    offers.push_back(OfferFrom(bytes));
  }
  return MakeLayout(offers);
}

}  // namespace plait::parallel
