#include "data/hdf5/image_file.h"

#include <algorithm>
#include <vector>

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

absl::Status ReadImage(const std::string& path, FileImage& image) {
  PLAIT_ASSIGN_OR_RETURN(const FileDescriptor file, FileDescriptor::Open(path, FileDescriptor::Mode::kRead));
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t size, file.SizeBytes());
  std::vector<char> bytes(std::size_t{1} << 20);
  for (std::int64_t offset = 0; offset < size;) {
    const std::int64_t count = std::min<std::int64_t>(static_cast<std::int64_t>(bytes.size()), size - offset);
    PLAIT_RETURN_IF_ERROR(file.ReadAt(bytes.data(), count, offset));
    image.Write(offset, absl::MakeConstSpan(bytes.data(), static_cast<std::size_t>(count)));
    offset += count;
  }
  return absl::OkStatus();
}

}  // namespace plait::data
