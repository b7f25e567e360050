// Upper bound on the size of an array, from the size of its file.
#ifndef PLAIT_DATA_HDF5_ARRAY_ROOM_H_
#define PLAIT_DATA_HDF5_ARRAY_ROOM_H_

#include <hdf5.h>

#include <cstdint>

namespace plait::data {

// Upper bound on the bytes of an array of an open file: the file size for contiguous arrays; else 1032 times that
// (deflate's best ratio) and 64 MiB for chunks that were never written.
std::int64_t MostBytes(hid_t file, hid_t array);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_ARRAY_ROOM_H_
