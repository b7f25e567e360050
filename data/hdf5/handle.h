// Ownership of one HDF5 identifier, and HDF5's error stack as one line.
#ifndef PLAIT_DATA_HDF5_HANDLE_H_
#define PLAIT_DATA_HDF5_HANDLE_H_

#include <hdf5.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace plait::data {

// Releases the identifier (file, array, space, type, list, attribute) when it goes. Move-only.
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

// How files are opened and made: strictly closed, in the formats since HDF5 1.8.
Handle FileAccess();

// While it lives HDF5 prints no errors; they stay on its stack for Hdf5Error().
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

// "where: innermost cause that HDF5 reports", with a code that fits it (disk full, permission, damaged,
// other). Call right after the failed call, while a QuietHdf5 lives: any other call, also a Handle's
// destructor, clears it.
absl::Status Hdf5Error(absl::string_view where, absl::string_view doing);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_HANDLE_H_
