#include "data/hdf5/file_image.h"

#include <algorithm>

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
  From(file).image->Read(static_cast<std::int64_t>(address), {static_cast<char*>(buffer), size});
  return 0;
}

herr_t Write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, const void* buffer) {
  From(file).image->Write(static_cast<std::int64_t>(address), {static_cast<const char*>(buffer), size});
  return 0;
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
// the range, and how many bytes.
template <typename With>
void ForPagesOf(std::int64_t offset, std::int64_t bytes, With with) {
  for (std::int64_t done = 0; done < bytes;) {
    const std::int64_t place = (offset + done) % kPageBytes;
    const std::int64_t count = std::min(kPageBytes - place, bytes - done);
    with((offset + done) / kPageBytes, place, done, count);
    done += count;
  }
}

}  // namespace

bool UseImage(const Handle& list, FileImage& image) {
  static const H5FD_class_t kClass = DriverClass();
  static const hid_t kDriver = H5FDregister(&kClass);
  FileImage* const pointer = &image;
  return kDriver >= 0 && H5Pset_driver(list.id(), kDriver, &pointer) >= 0;
}

void FileImage::ForEachPart(const std::function<bool(std::int64_t, absl::Span<const char>)>& part) const {
  for (const auto& [number, page] : pages_) {
    const std::int64_t offset = number * kPageBytes;
    const std::int64_t count = std::min(kPageBytes, size_bytes_ - offset);
    if (count <= 0 || !part(offset, absl::MakeConstSpan(page.data(), count))) return;
  }
}

void FileImage::Read(std::int64_t offset, absl::Span<char> to) const {
  ForPagesOf(offset, static_cast<std::int64_t>(to.size()),
             [&](auto number, auto place, auto done, auto count) {
               const auto found = pages_.find(number);
               if (found == pages_.end()) {
                 std::fill_n(to.data() + done, count, '\0');
               } else {
                 std::copy_n(found->second.data() + place, count, to.data() + done);
               }
             });
}

void FileImage::Write(std::int64_t offset, absl::Span<const char> from) {
  const auto bytes = static_cast<std::int64_t>(from.size());
  ForPagesOf(offset, bytes, [&](auto number, auto place, auto done, auto count) {
    std::vector<char>& page = pages_[number];
    page.resize(kPageBytes);
    std::copy_n(from.data() + done, count, page.data() + place);
  });
  size_bytes_ = std::max(size_bytes_, offset + bytes);
}

}  // namespace plait::data
