#include "data/hdf5/handle.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace plait::data {
namespace {

// The walk begins at the innermost record; the first one with a description is the cause.
herr_t KeepFirst(unsigned, const H5E_error2_t* record, void* data) {
  auto* text = static_cast<std::string*>(data);
  if (text->empty() && record->desc != nullptr) *text = record->desc;
  return 0;
}

absl::StatusCode CodeOf(absl::string_view cause) {
  if (absl::StrContains(cause, "No space left") || absl::StrContains(cause, "Disk quota") ||
      absl::StrContains(cause, "File too large")) {
    return absl::StatusCode::kResourceExhausted;
  }
  if (absl::StrContains(cause, "Permission denied") || absl::StrContains(cause, "Read-only file system")) {
    return absl::StatusCode::kPermissionDenied;
  }
  if (absl::StrContains(cause, "No such file")) return absl::StatusCode::kNotFound;
  for (absl::string_view damage :
       {"truncated", "signature", "checksum", "version", "corrupt", "bad ", "overflow"}) {
    if (absl::StrContains(cause, damage)) return absl::StatusCode::kDataLoss;
  }
  return absl::StatusCode::kUnavailable;
}

}  // namespace

Handle::~Handle() {
  if (id_ < 0) return;
  QuietHdf5 quiet;
  H5Idec_ref(id_);
}

Handle FileAccess() {
  Handle list(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_fclose_degree(list.id(), H5F_CLOSE_STRONG);
  // The formats since 1.8 have checksums over their own structures, so that damage there is found as well.
  H5Pset_libver_bounds(list.id(), H5F_LIBVER_V18, H5F_LIBVER_V110);
  // Files must be readable on file systems without locks (some network and parallel file systems).
  H5Pset_file_locking(list.id(), true, true);
  return list;
}

QuietHdf5::QuietHdf5() {
  H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

QuietHdf5::~QuietHdf5() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }

absl::Status Hdf5Error(absl::string_view where, absl::string_view doing) {
  std::string cause;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, KeepFirst, &cause);
  H5Eclear2(H5E_DEFAULT);
  if (cause.empty()) cause = "HDF5 gives no cause";
  return absl::Status(CodeOf(cause),
                      absl::StrCat(where, ": ", doing, ": ", absl::StrReplaceAll(cause, {{"\n", " "}})));
}

}  // namespace plait::data
