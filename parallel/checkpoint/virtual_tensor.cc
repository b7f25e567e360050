#include "parallel/checkpoint/virtual_tensor.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "parallel/checkpoint/box_range.h"
#include "parallel/checkpoint/shard_file.h"
#include "parallel/checkpoint/stored_type.h"

namespace plait::parallel {
namespace {

using data::Handle;
using Extents = std::vector<hsize_t>;

Extents ExtentsOf(const std::vector<std::int64_t>& numbers) { return {numbers.begin(), numbers.end()}; }

Handle SpaceOf(const TensorSpec& tensor) {
  const Extents shape = ExtentsOf(tensor.shape);
  return Handle(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
}

// Maps each box of the tensor to the part of the piece that holds it.
bool MapPiece(hid_t creation, const Layout& layout, const TensorSpec& tensor, const LayoutPiece& piece) {
  const hsize_t piece_elements = piece.elements();
  const std::string file = ShardFileName(static_cast<int>(piece.rank));
  const std::string array = "/" + layout.ArrayOf(piece);
  for (const PartOfRange& part : BoxesOfRange(piece.range)) {
    const Handle whole = SpaceOf(tensor);
    const Handle flat(H5Screate_simple(1, &piece_elements, nullptr));
    const hsize_t first = part.first - piece.range.begin, count = part.count;
    H5Sselect_hyperslab(whole.id(), H5S_SELECT_SET, ExtentsOf(part.box.begin).data(), nullptr,
                        ExtentsOf(part.box.size).data(), nullptr);
    H5Sselect_hyperslab(flat.id(), H5S_SELECT_SET, &first, nullptr, &count, nullptr);
    if (H5Pset_virtual(creation, whole.id(), file.c_str(), array.c_str(), flat.id()) < 0) return false;
  }
  return true;
}

}  // namespace

absl::Status AddVirtualTensor(data::File& index, const Layout& layout, const TensorSpec& tensor,
                              absl::Span<const LayoutPiece> pieces) {
  const data::QuietHdf5 quiet;
  const std::string name = "/" + PathOf(tensor);
  const std::string where = absl::StrCat(index.path(), ": ", name);
  const Handle links(H5Pcreate(H5P_LINK_CREATE));
  H5Pset_create_intermediate_group(links.id(), 1);
  if (tensor.shape.empty()) {
    const herr_t linked = H5Lcreate_external(ShardFileName(static_cast<int>(pieces[0].rank)).c_str(),
                                             ("/" + layout.ArrayOf(pieces[0])).c_str(), index.id(),
                                             name.c_str(), links.id(), H5P_DEFAULT);
    return linked < 0 ? data::Hdf5Error(where, "cannot be linked") : absl::OkStatus();
  }
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE));
  SetFillOfLostElements(creation.id(), tensor.dtype);
  for (const LayoutPiece& piece : pieces) {
    if (!MapPiece(creation.id(), layout, tensor, piece)) return data::Hdf5Error(where, "cannot be mapped");
  }
  const Handle type = StoredType(tensor.dtype);
  const Handle space = SpaceOf(tensor);
  const Handle array(
      H5Dcreate2(index.id(), name.c_str(), type.id(), space.id(), links.id(), creation.id(), H5P_DEFAULT));
  return array.ok() ? absl::OkStatus() : data::Hdf5Error(where, "cannot be created");
}

}  // namespace plait::parallel
