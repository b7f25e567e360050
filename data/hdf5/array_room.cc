#include "data/hdf5/array_room.h"

#include <algorithm>

#include "data/hdf5/handle.h"

namespace plait::data {

std::int64_t MostBytes(hid_t file, hid_t array) {
  constexpr std::int64_t kMostPacked = 1032, kUnwritten = std::int64_t{1} << 26;
  hsize_t size = 0;
  H5Fget_filesize(file, &size);
  const Handle creation(H5Dget_create_plist(array));
  const auto bytes = static_cast<std::int64_t>(std::min<hsize_t>(size, hsize_t{1} << 50));
  const bool plain = H5Pget_layout(creation.id()) == H5D_CONTIGUOUS && H5Dget_storage_size(array) > 0;
  return plain ? bytes : kUnwritten + kMostPacked * bytes;
}

}  // namespace plait::data
