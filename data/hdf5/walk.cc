#include "data/hdf5/walk.h"

#include <hdf5.h>
#include <hdf5_hl.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include "data/hdf5/handle.h"

namespace plait::data {
namespace {

// Deeper recursion could overflow the stack; Plait's files are not nested that deeply.
constexpr int kDeepest = 64;

herr_t ReadAttribute(hid_t object, const char* name, const H5A_info_t* about, void*) {
  const Handle attribute(H5Aopen(object, name, H5P_DEFAULT));
  const Handle type(H5Aget_type(attribute.id())), space(H5Aget_space(attribute.id()));
  const hsize_t size = H5Tget_size(type.id());
  const auto elements = static_cast<hsize_t>(std::max<hssize_t>(0, H5Sget_simple_extent_npoints(space.id())));
  if (!attribute.ok() || size == 0 || elements > 2 * about->data_size / size) return 0;
  std::vector<char> room(elements * size + 1);
  if (H5Aread(attribute.id(), type.id(), room.data()) >= 0) {
    H5Dvlen_reclaim(type.id(), space.id(), H5P_DEFAULT, room.data());
  }
  return 0;
}

void ReadElements(hid_t array, hid_t type, const std::vector<hsize_t>& first,
                  const std::vector<hsize_t>& count) {
  const Handle stored(H5Dget_space(array));
  if (!first.empty())
    H5Sselect_hyperslab(stored.id(), H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr);
  const Handle memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr));
  const hssize_t elements = H5Sget_select_npoints(stored.id());
  std::vector<char> room(static_cast<std::size_t>(elements) * H5Tget_size(type) + 1);
  if (H5Dread(array, type, first.empty() ? H5S_ALL : memory.id(), stored.id(), H5P_DEFAULT, room.data()) >=
      0) {
    H5Dvlen_reclaim(type, first.empty() ? stored.id() : memory.id(), H5P_DEFAULT, room.data());
  }
}

herr_t NameScale(hid_t, unsigned, hid_t scale, void*) {
  char name[256];
  H5Iget_name(scale, name, sizeof(name));
  return 0;
}

void ReadArray(hid_t array) {
  const Handle type(H5Dget_type(array)), space(H5Dget_space(array)), creation(H5Dget_create_plist(array));
  const int rank = H5Sget_simple_extent_ndims(space.id());
  if (!type.ok() || rank < 0 || H5Pget_layout(creation.id()) == H5D_VIRTUAL) return;
  std::vector<hsize_t> extent(rank), one(rank, 1), first(rank, 0);
  H5Sget_simple_extent_dims(space.id(), extent.data(), nullptr);
  for (int d = 0; d < rank; ++d)
    H5DSiterate_scales(array, static_cast<unsigned>(d), nullptr, NameScale, nullptr);
  if (std::count(extent.begin(), extent.end(), 0) > 0) return;
  ReadElements(array, type.id(), first, one);
  if (rank == 0) return;
  std::vector<hsize_t> last = extent;
  for (hsize_t& place : last) --place;
  ReadElements(array, type.id(), last, one);
  if (H5Pget_layout(creation.id()) != H5D_CHUNKED) return;
  // Rows of a chunk at a time.
  std::vector<hsize_t> chunk(rank), count = extent;
  H5Pget_chunk(creation.id(), rank, chunk.data());
  for (; first[0] < extent[0]; first[0] += chunk[0]) {
    count[0] = std::min(chunk[0], extent[0] - first[0]);
    ReadElements(array, type.id(), first, count);
  }
}

struct Walk {
  std::set<haddr_t> seen;  // groups may contain themselves
  int depth = 0;
};

void Visit(hid_t object, Walk& walk);

herr_t VisitLink(hid_t group, const char* name, const H5L_info_t* about, void* data) {
  auto& walk = *static_cast<Walk*>(data);
  H5O_info_t object_info;
  if (about->type != H5L_TYPE_HARD) return 0;
  const Handle object(H5Oopen(group, name, H5P_DEFAULT));
  if (!object.ok() || H5Oget_info1(object.id(), &object_info) < 0) return 0;
  if (!walk.seen.insert(object_info.addr).second) return 0;
  ++walk.depth;
  Visit(object.id(), walk);
  --walk.depth;
  return 0;
}

void Visit(hid_t object, Walk& walk) {
  for (const H5_index_t order : {H5_INDEX_CRT_ORDER, H5_INDEX_NAME}) {
    H5Aiterate2(object, order, H5_ITER_INC, nullptr, ReadAttribute, nullptr);
  }
  const H5I_type_t kind = H5Iget_type(object);
  if (kind == H5I_DATASET) ReadArray(object);
  if (kind != H5I_GROUP || walk.depth > kDeepest) return;
  if (H5Literate(object, H5_INDEX_CRT_ORDER, H5_ITER_INC, nullptr, VisitLink, &walk) < 0) {
    H5Literate(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, VisitLink, &walk);
  }
}

}  // namespace

void WalkFile(const std::string& path) {
  const QuietHdf5 quiet;
  const Handle access = FileAccess();
  const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()));
  if (!file.ok()) return;
  Walk walk;
  Visit(file.id(), walk);
}

}  // namespace plait::data
