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
#include "comm/byte_stream.h"
#include "comm/gathered_text.h"
#include "parallel/checkpoint/coverage.h"

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
  const std::string path = PathOf(tensor);
  if (path.size() > kLongestPath || groups.size() > kMostGroups) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path.substr(0, 40), "...\" cannot name a tensor: ", path.size(), " bytes and ",
                     groups.size(), " groups; expected at most ", kLongestPath, " and ", kMostGroups));
  }
  bool usable = IsUsable(tensor.name) && !absl::StrContains(tensor.name, '/') && groups[0] != "plait";
  for (const absl::string_view group : groups) usable = usable && IsUsable(group);
  if (usable) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("\"", path, "\" cannot name a tensor"));
}

// A product of sizes that overflows 63 bits could look small.
absl::Status CheckShape(const TensorSpec& tensor) {
  if (tensor.shape.size() > kMostDimensions) {
    return absl::InvalidArgumentError(absl::StrCat(PathOf(tensor), ": ", tensor.shape.size(),
                                                   " dimensions; expected at most ", kMostDimensions));
  }
  std::int64_t left = std::numeric_limits<std::int64_t>::max() / 8;
  for (const std::int64_t size : tensor.shape) {
    if (size < 0 || (size > 0 && size > left)) {
      return absl::InvalidArgumentError(
          absl::StrCat(PathOf(tensor), ": ", TypeAndShapeOf(tensor), " is not a valid shape"));
    }
    if (size > 0) left /= size;
  }
  return absl::OkStatus();
}

absl::Status CheckPiece(const TensorPiece& piece, int rank) {
  const bool is_whole = piece.box == models::Box();
  if (!is_whole && !IsInside(piece.box, piece.tensor.shape)) {
    return absl::InvalidArgumentError(absl::StrCat(PathOf(piece.tensor), ": rank ", rank, " offers the box ",
                                                   TextOf(piece.box), " of ", TypeAndShapeOf(piece.tensor)));
  }
  const std::int64_t elements = ElementsOf(is_whole ? piece.tensor.shape : piece.box.size);
  if (0 <= piece.begin && piece.begin <= piece.end && piece.end <= elements) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(PathOf(piece.tensor), ": rank ", rank, " offers elements ",
                                                 RangeText(piece.begin, piece.end), " of ", elements));
}

// No tensor may have the path of a group: an HDF5 file cannot have both.
absl::Status CheckGroups(const Layout& layout) {
  std::set<absl::string_view> groups;
  for (const TensorSpec& tensor : layout.tensors) {
    for (std::size_t slash = tensor.group.find('/'); slash != std::string::npos;
         slash = tensor.group.find('/', slash + 1)) {
      groups.insert(absl::string_view(tensor.group).substr(0, slash));
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
    if (!IsLast(piece.tensor)) PLAIT_RETURN_IF_ERROR(Find(piece.tensor, rank));
    PLAIT_RETURN_IF_ERROR(CheckPiece(piece, rank));
    if (piece.begin == piece.end) return absl::OkStatus();
    layout_.pieces.push_back(
        {last_, rank, Normalized(piece.tensor.shape, {piece.box, piece.begin, piece.end}), offered});
    return absl::OkStatus();
  }

 private:
  // Ranks pass the pieces of a tensor consecutively, and mostly the same tensors in the same order: this saves
  // thousands of lookups by name.
  bool IsLast(const TensorSpec& tensor) {
    const auto known = static_cast<std::int64_t>(layout_.tensors.size());
    if (last_ >= 0 && layout_.tensors[last_] == tensor) return true;
    if (last_ + 1 >= known || !(layout_.tensors[last_ + 1] == tensor)) return false;
    ++last_;
    return true;
  }

  absl::Status Find(const TensorSpec& tensor, int rank) {
    PLAIT_RETURN_IF_ERROR(CheckName(tensor));
    PLAIT_RETURN_IF_ERROR(CheckShape(tensor));
    const auto [found, is_new] =
        known_.try_emplace(PathOf(tensor), static_cast<std::int64_t>(layout_.tensors.size()), rank);
    const auto [index, first_rank] = found->second;
    if (is_new) layout_.tensors.push_back(tensor);
    last_ = index;
    const TensorSpec& known = layout_.tensors[index];
    if (known == tensor) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(PathOf(known), " is ", TypeAndShapeOf(known), " on rank ",
                                                   first_rank, " and ", TypeAndShapeOf(tensor), " on rank ",
                                                   rank));
  }

  Layout& layout_;
  std::map<std::string, std::pair<std::int64_t, int>> known_;  // path -> index, rank that named it first
  std::int64_t last_ = -1;                                     // index of the tensor that was offered last
};

// Checks the pieces of one tensor. Without boxes it is treated as a vector, whose ranges are boxes.
absl::Status CheckCoverage(const TensorSpec& tensor, absl::Span<const LayoutPiece> pieces) {
  const bool is_flat = std::all_of(pieces.begin(), pieces.end(), [&](const LayoutPiece& piece) {
    return piece.range.box.size == tensor.shape;
  });
  std::vector<OwnedBox> boxes;
  for (const LayoutPiece& piece : pieces) {
    if (is_flat) {
      boxes.push_back({{{piece.range.begin}, {piece.elements()}}, piece.rank});
      continue;
    }
    for (PartOfRange& part : BoxesOfRange(piece.range)) boxes.push_back({std::move(part.box), piece.rank});
  }
  const std::optional<CoverageFault> fault =
      FindCoverageFault(is_flat ? Shape{ElementsOf(tensor)} : tensor.shape, boxes);
  if (!fault) return absl::OkStatus();
  const std::string elements =
      is_flat ? RangeText(fault->box.begin[0], fault->box.begin[0] + fault->box.size[0]) : TextOf(fault->box);
  const std::string where =
      absl::StrCat(PathOf(tensor), ", ", TypeAndShapeOf(tensor), ": elements ", elements, " are on ");
  if (fault->owners.empty()) return absl::InvalidArgumentError(absl::StrCat(where, "no rank"));
  const auto [first, second] = std::minmax(fault->owners[0], fault->owners[1]);
  return absl::InvalidArgumentError(
      absl::StrCat(where, "rank ", first, " and on rank ", second, "; only one piece may have an element"));
}

std::string OfferBytes(std::int64_t step, absl::Span<const TensorPiece> pieces) {
  comm::ByteWriter writer;
  writer.Write(step);
  writer.Write(pieces.size());
  for (const TensorPiece& piece : pieces) {
    WriteSpec(piece.tensor, writer);
    writer.WriteNumbers(piece.box.begin);
    writer.WriteNumbers(piece.box.size);
    writer.Write(piece.begin);
    writer.Write(piece.end);
  }
  return writer.Take();
}

Offer OfferFrom(const std::string& bytes) {
  comm::ByteReader reader(bytes);
  Offer offer;
  offer.step = reader.Read<std::int64_t>();
  offer.pieces.resize(reader.Read<std::size_t>());
  for (TensorPiece& piece : offer.pieces) {
    piece.tensor = ReadSpec(reader);
    piece.box.begin = reader.ReadNumbers<std::int64_t>();
    piece.box.size = reader.ReadNumbers<std::int64_t>();
    piece.begin = reader.Read<std::int64_t>();
    piece.end = reader.Read<std::int64_t>();
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

absl::Span<const LayoutPiece> Layout::PiecesOfTensor(std::int64_t tensor) const {
  const auto begin =
      std::lower_bound(pieces.begin(), pieces.end(), tensor,
                       [](const LayoutPiece& piece, std::int64_t t) { return piece.tensor < t; });
  const auto end = std::upper_bound(
      begin, pieces.end(), tensor, [](std::int64_t t, const LayoutPiece& piece) { return t < piece.tensor; });
  return absl::MakeConstSpan(pieces).subspan(begin - pieces.begin(), end - begin);
}

std::int64_t Layout::BytesOf(const LayoutPiece& piece) const {
  return piece.elements() * ElementBytes(tensors[piece.tensor].dtype);
}

std::int64_t Layout::TotalBytes() const {
  std::int64_t bytes = 0;
  for (const LayoutPiece& piece : pieces) bytes += BytesOf(piece);
  return bytes;
}

std::string Layout::ArrayOf(const LayoutPiece& piece) const {
  const TensorSpec& tensor = tensors[piece.tensor];
  const std::string box = piece.range.box.size == tensor.shape ? "" : parallel::TextOf(piece.range.box);
  return absl::StrCat(PathOf(tensor), box, "[", piece.range.begin, ":", piece.range.end, "]");
}

std::string Layout::TextOf(const LayoutPiece& piece, std::int64_t begin, std::int64_t end) const {
  std::string range = RangeText(begin, end);
  if (piece.range.box.size == tensors[piece.tensor].shape) return range;
  return absl::StrCat(range, " of box ", parallel::TextOf(piece.range.box));
}

bool PrecedesInLayout(const LayoutPiece& a, const LayoutPiece& b) {
  return std::tie(a.tensor, a.range.box.begin, a.range.box.size, a.range.begin) <
         std::tie(b.tensor, b.range.box.begin, b.range.box.size, b.range.begin);
}

absl::Status CheckTensors(const Layout& layout) {
  std::set<std::string> paths;
  for (const TensorSpec& tensor : layout.tensors) {
    PLAIT_RETURN_IF_ERROR(CheckName(tensor));
    PLAIT_RETURN_IF_ERROR(CheckShape(tensor));
    if (paths.insert(PathOf(tensor)).second) continue;
    return absl::InvalidArgumentError(absl::StrCat(PathOf(tensor), " is there twice"));
  }
  return CheckGroups(layout);
}

absl::Status CheckCoverage(const Layout& layout) {
  for (std::int64_t t = 0; t < std::ssize(layout.tensors); ++t) {
    PLAIT_RETURN_IF_ERROR(CheckCoverage(layout.tensors[t], layout.PiecesOfTensor(t)));
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
  std::stable_sort(layout.pieces.begin(), layout.pieces.end(), PrecedesInLayout);
  PLAIT_RETURN_IF_ERROR(CheckGroups(layout));
  PLAIT_RETURN_IF_ERROR(CheckCoverage(layout));
  return layout;
}

absl::StatusOr<Layout> AgreeOnLayout(const comm::Communicator& comm, std::int64_t step,
                                     absl::Span<const TensorPiece> pieces) {
  std::vector<Offer> offers;
  for (const std::string& bytes : comm::GatherText(comm, OfferBytes(step, pieces))) {
    offers.push_back(OfferFrom(bytes));
  }
  return MakeLayout(offers);
}

}  // namespace plait::parallel
