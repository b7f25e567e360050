#include "data/hdf5/image_file.h"

#include "base/file_descriptor.h"
#include "base/status_macros.h"

namespace plait::data {

using base::FileDescriptor;

absl::Status WriteImage(const FileImage& image, const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const FileDescriptor file,
                         FileDescriptor::Open(path, FileDescriptor::Mode::kCreate));
  PLAIT_RETURN_IF_ERROR(file.Reserve(image.size_bytes()));
  absl::Status status;
  image.ForEachPart([&](std::int64_t offset, absl::Span<const char> bytes) {
    status = file.WriteAt(bytes.data(), static_cast<std::int64_t>(bytes.size()), offset);
    return status.ok();
  });
  return status;
}

absl::Status WriteOnDisk(const std::string& path, const std::function<absl::Status(File&)>& fill) {
  PLAIT_RETURN_IF_ERROR(FileDescriptor::Open(path, FileDescriptor::Mode::kCreate).status());
  PLAIT_ASSIGN_OR_RETURN(FileImage image, FileImage::On(path));
  PLAIT_ASSIGN_OR_RETURN(File file, File::Create(path, image));
  PLAIT_RETURN_IF_ERROR(fill(file));
  PLAIT_RETURN_IF_ERROR(file.Close());
  return image.Finish();
}

}  // namespace plait::data
