// What a file has room for.
#ifndef PLAIT_DATA_HDF5_ARRAY_ROOM_H_
#define PLAIT_DATA_HDF5_ARRAY_ROOM_H_

#include <hdf5.h>

#include <cstdint>

namespace plait::data {

// The most bytes that an array of an open file may be said to have: deflate packs at most 1032 : 1, and chunks that were
// never written take no room.
std::int64_t MostBytes(hid_t file, hid_t array);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_ARRAY_ROOM_H_
