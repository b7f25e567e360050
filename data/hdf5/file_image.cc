#include "data/hdf5/file_image.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace plait::data {
namespace {

constexpr std::int64_t kPageBytes = std::int64_t{1} << 14;

// HDF5's view of an image: a driver of its virtual file layer. The first member is HDF5's own part.
struct OpenImage {
  H5FD_t hdf5;
  FileImage* image;
  haddr_t allocated;
};

OpenImage& From(H5FD_t* file) { return *reinterpret_cast<OpenImage*>(file); }
const OpenImage& From(const H5FD_t* file) { return *reinterpret_cast<const OpenImage*>(file); }

H5FD_t* Open(const char*, unsigned, hid_t list, haddr_t) {
  auto* const* image = static_cast<FileImage* const*>(H5Pget_driver_info(list));
  return image == nullptr ? nullptr : &(new OpenImage{{}, *image, 0})->hdf5;
}

herr_t Close(H5FD_t* file) {
  delete &From(file);
  return 0;
}

herr_t Query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

haddr_t Allocated(const H5FD_t* file, H5FD_mem_t) { return From(file).allocated; }

herr_t SetAllocated(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  From(file).allocated = address;
  return 0;
}

haddr_t End(const H5FD_t* file, H5FD_mem_t) { return From(file).image->size_bytes(); }

herr_t Read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, void* buffer) {
  const bool read =
      From(file).image->Read(static_cast<std::int64_t>(address), {static_cast<char*>(buffer), size});
  return read ? 0 : -1;
}

herr_t Write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, const void* buffer) {
  const bool written =
      From(file).image->Write(static_cast<std::int64_t>(address), {static_cast<const char*>(buffer), size});
  return written ? 0 : -1;
}

herr_t Truncate(H5FD_t* file, hid_t, hbool_t) {
  From(file).image->Resize(static_cast<std::int64_t>(From(file).allocated));
  return 0;
}

H5FD_class_t DriverClass() {
  H5FD_class_t driver = {};
  driver.name = "plait_image";
  driver.maxaddr = static_cast<haddr_t>(INT64_MAX);
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(FileImage*);
  driver.open = Open;
  driver.close = Close;
  driver.query = Query;
  driver.get_eoa = Allocated;
  driver.set_eoa = SetAllocated;
  driver.get_eof = End;
  driver.read = Read;
  driver.write = Write;
  driver.truncate = Truncate;
  const H5FD_mem_t map[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(map), std::end(map), driver.fl_map);
  return driver;
}

// Calls `with` for each page that [offset, offset + bytes) touches: its number, the place in it, the place in
// the range, and how many bytes. Until one returns false, which is then its result.
template <typename With>
bool ForPagesOf(std::int64_t offset, std::int64_t bytes, With with) {
  for (std::int64_t done = 0; done < bytes;) {
    const std::int64_t place = (offset + done) % kPageBytes;
    const std::int64_t count = std::min(kPageBytes - place, bytes - done);
    if (!with((offset + done) / kPageBytes, place, done, count)) return false;
    done += count;
  }
  return true;
}

}  // namespace

Handle ImageAccess(FileImage& image) {
  static const H5FD_class_t kClass = DriverClass();
  static const hid_t kDriver = H5FDregister(&kClass);
  FileImage* const pointer = &image;
  Handle list = FileAccess();
  if (H5Pset_driver(list.id(), kDriver, &pointer) < 0) return Handle();  // opening with it fails
  return list;
}

void FileImage::ForEachPart(const std::function<bool(std::int64_t, absl::Span<const char>)>& part) const {
  for (const auto& [number, page] : pages_) {
    const std::int64_t offset = number * kPageBytes;
    const std::int64_t count = std::min(kPageBytes, size_bytes_ - offset);
    if (count <= 0 || !part(offset, absl::MakeConstSpan(page.data(), count))) return;
  }
}

absl::StatusOr<FileImage> FileImage::On(const std::string& path) {
  FileImage image;
  PLAIT_ASSIGN_OR_RETURN(base::FileDescriptor file,
                         base::FileDescriptor::Open(path, base::FileDescriptor::Mode::kReadWrite));
  PLAIT_ASSIGN_OR_RETURN(image.size_on_disk_, file.SizeBytes());
  image.size_bytes_ = image.size_on_disk_;
  image.disk_ = std::move(file);
  return image;
}

absl::Status FileImage::Finish() const {
  PLAIT_RETURN_IF_ERROR(written_);
  return disk_->Truncate(size_bytes_);
}

bool FileImage::ReadDisk(std::int64_t offset, absl::Span<char> to) const {
  const std::int64_t there = std::clamp<std::int64_t>(size_on_disk_ - offset, 0, to.size());
  std::fill(to.begin() + there, to.end(), '\0');
  return there == 0 || disk_->ReadAt(to.data(), there, offset).ok();
}

bool FileImage::Read(std::int64_t offset, absl::Span<char> to) const {
  return ForPagesOf(offset, static_cast<std::int64_t>(to.size()),
                    [&](auto number, auto place, auto done, auto count) {
                      const auto found = pages_.find(number);
                      if (found == pages_.end()) return ReadDisk(offset + done, to.subspan(done, count));
                      std::copy_n(found->second.data() + place, count, to.data() + done);
                      return true;
                    });
}

bool FileImage::Write(std::int64_t offset, absl::Span<const char> from) {
  const auto bytes = static_cast<std::int64_t>(from.size());
  size_bytes_ = std::max(size_bytes_, offset + bytes);
  if (disk_.has_value() && written_.ok()) {
    written_ = disk_->WriteAt(from.data(), bytes, offset);
    if (written_.ok()) size_on_disk_ = std::max(size_on_disk_, offset + bytes);
    if (written_.ok()) return true;
  }
  return ForPagesOf(offset, bytes, [&](auto number, auto place, auto done, auto count) {
    const auto [page, is_new] = pages_.try_emplace(number, kPageBytes);
    if (is_new && !ReadDisk(number * kPageBytes, absl::MakeSpan(page->second))) return false;
    std::copy_n(from.data() + done, count, page->second.data() + place);
    return true;
  });
}

}  // namespace plait::data
