#include "data/video/feature_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/checked_array.h"
#include "data/hdf5/dimension.h"
#include "data/hdf5/file.h"
#include "data/hdf5/image_file.h"

namespace plait::data {
namespace {

constexpr char kFormat[] = "plait frame features";
constexpr std::int64_t kVersion = 1;
constexpr char kFeatures[] = "/features";
constexpr char kMadeFrom[] = "made_from";

absl::Status Fill(File& file, const FrameFeatures& features, const std::string& made_from) {
  PLAIT_RETURN_IF_ERROR(SetFormat(file, kFormat, kVersion));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", kMadeFrom, made_from));
  PLAIT_RETURN_IF_ERROR(MakeNumberedDimension(file, "frame", features.frames));
  PLAIT_RETURN_IF_ERROR(MakeNumberedDimension(file, "feature", features.features));
  PLAIT_RETURN_IF_ERROR(
      WriteChecked<float>(file, kFeatures, features.values, {features.frames, features.features}));
  PLAIT_RETURN_IF_ERROR(AttachDimension(file, kFeatures, "/frame", 0));
  return AttachDimension(file, kFeatures, "/feature", 1);
}

}  // namespace

absl::Status WriteFeatures(const std::string& path, const FrameFeatures& features,
                           const std::string& made_from) {
  constexpr std::int64_t kOverhead = 1 << 15;
  PLAIT_RETURN_IF_ERROR(MakeFolders(FolderOf(path)));
  return WriteAtomically(path, static_cast<std::int64_t>(features.values.size() * sizeof(float)) + kOverhead,
                         [&](const std::string& partial) {
                           return WriteOnDisk(partial,
                                              [&](File& file) { return Fill(file, features, made_from); });
                         });
}

absl::StatusOr<FrameFeatures> ReadFeatures(const std::string& path, const std::string& made_from) {
  PLAIT_ASSIGN_OR_RETURN(const File file, OpenFormat(path, kFormat, kVersion, "frame features"));
  PLAIT_ASSIGN_OR_RETURN(const std::string found, OrDamage(TextAttribute(file, "/", kMadeFrom)));
  if (found != made_from) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": made from ", found, "; expected ", made_from));
  }
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::int64_t> shape, OrDamage(ArrayShape(file, kFeatures)));
  if (shape.size() != 2)
    return absl::DataLossError(absl::StrCat(path, ": ", kFeatures, ": expected two dimensions"));
  FrameFeatures features = {shape[0], shape[1], {}};
  PLAIT_ASSIGN_OR_RETURN(features.values, OrDamage(ReadChecked<float>(file, kFeatures)));
  return features;
}

}  // namespace plait::data
