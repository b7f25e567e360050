// Ownership of one HDF5 identifier, and HDF5's error stack as one line.
#ifndef PLAIT_DATA_HDF5_HANDLE_H_
#define PLAIT_DATA_HDF5_HANDLE_H_

#include <hdf5.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace plait::data {

// Releases the identifier (file, array, space, type, list, attribute) on destruction. Move-only.
class Handle {
 public:
  Handle() = default;
  explicit Handle(hid_t id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle();

  hid_t id() const { return id_; }
  bool ok() const { return id_ >= 0; }
  hid_t Release() { return std::exchange(id_, H5I_INVALID_HID); }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

// File access properties: H5F_CLOSE_STRONG, formats of HDF5 1.8 to 1.10, no failure on file systems without locks.
Handle FileAccess();

// Keeps HDF5 from printing errors during its lifetime; they stay on HDF5's error stack for Hdf5Error().
class QuietHdf5 {
 public:
  QuietHdf5();
  ~QuietHdf5();
  QuietHdf5(const QuietHdf5&) = delete;
  QuietHdf5& operator=(const QuietHdf5&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

// "WHERE: DOING: innermost cause that HDF5 reports", with a matching code: RESOURCE_EXHAUSTED, PERMISSION_DENIED,
// NOT_FOUND, DATA_LOSS or UNAVAILABLE. Call it right after the failed call, while a QuietHdf5 is alive: any other HDF5
// call, including a Handle's destructor, clears the stack.
absl::Status Hdf5Error(absl::string_view where, absl::string_view doing);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_HANDLE_H_
