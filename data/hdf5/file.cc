#include "data/hdf5/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "data/hdf5/array_room.h"
#include "data/hdf5/trial.h"

namespace plait::data {
namespace {

using Shape = std::vector<std::int64_t>;

template <typename T>
hid_t TypeOf() {
  if constexpr (std::is_same_v<T, float>) return H5T_NATIVE_FLOAT;
  if constexpr (std::is_same_v<T, double>) return H5T_NATIVE_DOUBLE;
  if constexpr (std::is_same_v<T, std::int64_t>) return H5T_NATIVE_INT64;
  if constexpr (std::is_same_v<T, std::uint64_t>) return H5T_NATIVE_UINT64;
  if constexpr (std::is_same_v<T, std::int32_t>) return H5T_NATIVE_INT32;
  if constexpr (std::is_same_v<T, std::uint32_t>) return H5T_NATIVE_UINT32;
  if constexpr (std::is_same_v<T, std::int16_t>) return H5T_NATIVE_INT16;
  if constexpr (std::is_same_v<T, std::uint16_t>) return H5T_NATIVE_UINT16;
  if constexpr (std::is_same_v<T, std::uint8_t>) return H5T_NATIVE_UINT8;
}

std::string Where(const File& file, const std::string& object) {
  return absl::StrCat(file.path(), ": ", object);
}

std::string ShapeText(const Shape& shape) { return absl::StrCat("(", absl::StrJoin(shape, ", "), ")"); }

std::int64_t Elements(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// False on overflow of 63 bits.
bool MultiplyAll(const Shape& shape, std::int64_t& product) {
  return std::all_of(shape.begin(), shape.end(), [&](std::int64_t size) {
    return size >= 0 && !__builtin_mul_overflow(product, size, &product);
  });
}

std::vector<hsize_t> Extents(const Shape& shape) { return {shape.begin(), shape.end()}; }

// open() distinguishes missing, unreadable and non-HDF5 files better than HDF5's messages do.
absl::Status CheckReadable(const std::string& path) {
  // Over a named pipe, open() without O_NONBLOCK would block, and so would HDF5.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be opened"));
  struct stat about = {};
  const bool regular = fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
  close(descriptor);
  if (regular && H5Fis_hdf5(path.c_str()) > 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, ": not an HDF5 file"));
}

// Only hard links: an external link may lead to a file that was not checked.
bool HasLink(hid_t file, const std::string& path) {
  H5L_info_t about;
  return H5Lexists(file, path.c_str(), H5P_DEFAULT) > 0 &&
         H5Lget_info(file, path.c_str(), &about, H5P_DEFAULT) >= 0 && about.type == H5L_TYPE_HARD;
}

absl::StatusOr<Handle> OpenArray(const File& file, const std::string& name) {
  if (!file.Has(name))
    return absl::NotFoundError(absl::StrCat(Where(file, name), ": no such array in the file"));
  Handle array(H5Dopen2(file.id(), name.c_str(), H5P_DEFAULT));
  if (!array.ok()) return Hdf5Error(Where(file, name), "cannot be opened");
  return array;
}

absl::StatusOr<Shape> ShapeOf(const File& file, const std::string& name, const Handle& array) {
  Handle space(H5Dget_space(array.id()));
  const int rank = H5Sget_simple_extent_ndims(space.id());
  if (rank < 0 || H5Sget_simple_extent_type(space.id()) == H5S_NULL)
    return Hdf5Error(Where(file, name), "has no readable shape");
  std::vector<hsize_t> extents(rank);
  H5Sget_simple_extent_dims(space.id(), extents.data(), nullptr);
  return Shape(extents.begin(), extents.end());
}

// Numbers are converted within their class only: a label read as float would hide a mistaken name.
template <typename T>
absl::Status CheckClass(const File& file, const std::string& name, const Handle& array) {
  Handle stored(H5Dget_type(array.id()));
  if (H5Tget_class(stored.id()) == H5Tget_class(TypeOf<T>())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      Where(file, name), ": has another type than the ",
      H5Tget_class(TypeOf<T>()) == H5T_FLOAT ? "floating-point numbers" : "integers", " requested"));
}

// Before memory is taken for a block of the array.
absl::Status CheckRoom(const File& file, const std::string& name, const Handle& array, const Shape& extent) {
  const Handle type(H5Dget_type(array.id()));
  auto bytes = static_cast<std::int64_t>(H5Tget_size(type.id()));
  if (MultiplyAll(extent, bytes) && bytes <= MostBytes(file.id(), array.id())) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(Where(file, name), ": damaged: its shape says ", ShapeText(extent),
                                          ", more than the file can hold"));
}

Handle ScalarSpace() { return Handle(H5Screate(H5S_SCALAR)); }

absl::StatusOr<Handle> OpenObject(const File& file, const std::string& object) {
  if (!file.Has(object))
    return absl::NotFoundError(absl::StrCat(Where(file, object), ": no such object in the file"));
  Handle opened(H5Oopen(file.id(), object.c_str(), H5P_DEFAULT));
  if (!opened.ok()) return Hdf5Error(Where(file, object), "cannot be opened");
  return opened;
}

std::string AttributeWhere(const File& file, const std::string& object, const std::string& name) {
  return absl::StrCat(Where(file, object), ": attribute ", name);
}

constexpr std::size_t kLongestText = std::size_t{1} << 26;

absl::Status WriteAttribute(File& file, const std::string& object, const std::string& name, hid_t type,
                            const void* value) {
  QuietHdf5 quiet;
  PLAIT_ASSIGN_OR_RETURN(const Handle owner, OpenObject(file, object));
  if (H5Aexists(owner.id(), name.c_str()) > 0) H5Adelete(owner.id(), name.c_str());
  const Handle space = ScalarSpace();
  Handle attribute(H5Acreate2(owner.id(), name.c_str(), type, space.id(), H5P_DEFAULT, H5P_DEFAULT));
  if (attribute.ok() && H5Awrite(attribute.id(), type, value) >= 0) return absl::OkStatus();
  return Hdf5Error(AttributeWhere(file, object, name), "cannot be written");
}

absl::StatusOr<Handle> OpenAttribute(const File& file, const std::string& object, const std::string& name) {
  PLAIT_ASSIGN_OR_RETURN(const Handle owner, OpenObject(file, object));
  if (H5Aexists(owner.id(), name.c_str()) <= 0) {
    return absl::NotFoundError(absl::StrCat(AttributeWhere(file, object, name), ": not in the file"));
  }
  Handle attribute(H5Aopen(owner.id(), name.c_str(), H5P_DEFAULT));
  if (!attribute.ok()) return Hdf5Error(AttributeWhere(file, object, name), "cannot be opened");
  return attribute;
}

}  // namespace

absl::StatusOr<File> File::CreateWith(const std::string& path, const Handle& access) {
  const QuietHdf5 quiet;
  Handle creation(H5Pcreate(H5P_FILE_CREATE));
  constexpr unsigned kOrder = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
  H5Pset_link_creation_order(creation.id(), kOrder);
  H5Pset_attr_creation_order(creation.id(), kOrder);
  Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.id(), access.id()));
  if (!file.ok()) return Hdf5Error(path, "cannot be created");
  return File(path, std::move(file));
}

absl::StatusOr<File> File::OpenWith(const std::string& path, unsigned flags, const Handle& access) {
  const QuietHdf5 quiet;
  PLAIT_RETURN_IF_ERROR(CheckReadable(path));
  Handle file(H5Fopen(path.c_str(), flags, access.id()));
  if (!file.ok()) return Hdf5Error(path, "damaged or in use");
  return File(path, std::move(file));
}

absl::StatusOr<File> File::Create(const std::string& path) { return CreateWith(path, FileAccess()); }
absl::StatusOr<File> File::Create(const std::string& path, FileImage& image) {
  return CreateWith(path, ImageAccess(image));
}

absl::StatusOr<File> File::Open(const std::string& path, Mode mode) {
  return OpenWith(path, mode == Mode::kRead ? H5F_ACC_RDONLY : H5F_ACC_RDWR, FileAccess());
}
absl::StatusOr<File> File::Open(const std::string& path, FileImage& image) {
  return OpenWith(path, H5F_ACC_RDWR, ImageAccess(image));
}

absl::StatusOr<File> File::OpenForeign(const std::string& path) {
  PLAIT_RETURN_IF_ERROR(CheckReadable(path));
  PLAIT_RETURN_IF_ERROR(TryInChild(path));
  return Open(path);
}

absl::Status File::Close() {
  if (!handle_.ok()) return absl::OkStatus();
  QuietHdf5 quiet;
  absl::Status flushed;
  if (H5Fflush(handle_.id(), H5F_SCOPE_LOCAL) < 0) flushed = Hdf5Error(path_, "cannot be written out");
  if (H5Fclose(handle_.Release()) < 0 && flushed.ok()) return Hdf5Error(path_, "cannot be closed");
  return flushed;
}

bool File::Has(const std::string& object) const {
  QuietHdf5 quiet;
  for (std::size_t slash = object.find('/', 1); slash != std::string::npos;
       slash = object.find('/', slash + 1)) {
    if (!HasLink(id(), object.substr(0, slash))) return false;
  }
  return object == "/" || HasLink(id(), object);
}

absl::StatusOr<std::vector<std::string>> File::Names(const std::string& group) const {
  QuietHdf5 quiet;
  PLAIT_ASSIGN_OR_RETURN(const Handle opened, OpenObject(*this, group));
  std::vector<std::string> names;
  const auto keep = [](hid_t, const char* name, const H5L_info_t* about, void* data) -> herr_t {
    if (about->type == H5L_TYPE_HARD) static_cast<std::vector<std::string>*>(data)->push_back(name);
    return 0;
  };
  if (H5Literate(opened.id(), H5_INDEX_CRT_ORDER, H5_ITER_INC, nullptr, keep, &names) >= 0) return names;
  names.clear();
  if (H5Literate(opened.id(), H5_INDEX_NAME, H5_ITER_INC, nullptr, keep, &names) >= 0) return names;
  return Hdf5Error(Where(*this, group), "cannot be listed");
}

absl::StatusOr<Shape> ArrayShape(const File& file, const std::string& name) {
  QuietHdf5 quiet;
  PLAIT_ASSIGN_OR_RETURN(const Handle array, OpenArray(file, name));
  return ShapeOf(file, name, array);
}

absl::Status CheckRoom(const File& file, const std::string& name, const Shape& extent) {
  QuietHdf5 quiet;
  PLAIT_ASSIGN_OR_RETURN(const Handle array, OpenArray(file, name));
  return CheckRoom(file, name, array, extent);
}

template <typename T>
absl::Status WriteArray(File& file, const std::string& name, absl::Span<const T> values, const Shape& shape) {
  QuietHdf5 quiet;
  if (Elements(shape) != static_cast<std::int64_t>(values.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(Where(file, name), ": ", values.size(), " values do not fill shape ", ShapeText(shape)));
  }
  const std::vector<hsize_t> extents = Extents(shape);
  const Handle space =
      shape.empty() ? ScalarSpace() : Handle(H5Screate_simple(extents.size(), extents.data(), nullptr));
  const Handle links(H5Pcreate(H5P_LINK_CREATE));
  H5Pset_create_intermediate_group(links.id(), 1);
  const Handle array(
      H5Dcreate2(file.id(), name.c_str(), TypeOf<T>(), space.id(), links.id(), H5P_DEFAULT, H5P_DEFAULT));
  if (!array.ok()) return Hdf5Error(Where(file, name), "cannot be created");
  if (values.empty()) return absl::OkStatus();
  if (H5Dwrite(array.id(), TypeOf<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
    return Hdf5Error(Where(file, name), "cannot be written");
  }
  return absl::OkStatus();
}

template <typename T>
absl::StatusOr<std::vector<T>> ReadArray(const File& file, const std::string& name) {
  QuietHdf5 quiet;
  PLAIT_ASSIGN_OR_RETURN(const Handle array, OpenArray(file, name));
  PLAIT_RETURN_IF_ERROR(CheckClass<T>(file, name, array));
  PLAIT_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(file, name, array));
  PLAIT_RETURN_IF_ERROR(CheckRoom(file, name, array, shape));
  std::vector<T> values(Elements(shape));
  if (!values.empty() && H5Dread(array.id(), TypeOf<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
    return Hdf5Error(Where(file, name), "cannot be read");
  }
  return values;
}

namespace {

absl::Status CheckBlock(const File& file, const std::string& name, const Shape& shape, const Shape& offset,
                        const Shape& extent) {
  bool fits = offset.size() == shape.size() && extent.size() == shape.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i) {
    fits = offset[i] >= 0 && extent[i] >= 0 && extent[i] <= shape[i] - offset[i];
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(Where(file, name), ": block at ", ShapeText(offset),
                                                 " of extent ", ShapeText(extent), " is not inside shape ",
                                                 ShapeText(shape)));
}

// Selects the block in the array's space.
Handle BlockSpace(const Handle& array, const Shape& offset, const Shape& extent) {
  Handle space(H5Dget_space(array.id()));
  H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, Extents(offset).data(), nullptr, Extents(extent).data(),
                      nullptr);
  return space;
}

template <typename T>
absl::Status ReadBlockInto(const File& file, const std::string& name, const Handle& array,
                           const Shape& offset, const Shape& extent, absl::Span<T> out) {
  PLAIT_RETURN_IF_ERROR(CheckClass<T>(file, name, array));
  if (out.empty()) return absl::OkStatus();
  const Handle stored = BlockSpace(array, offset, extent);
  const hsize_t count = out.size();
  const Handle memory(H5Screate_simple(1, &count, nullptr));
  if (H5Dread(array.id(), TypeOf<T>(), memory.id(), stored.id(), H5P_DEFAULT, out.data()) < 0) {
    return Hdf5Error(Where(file, name), "cannot be read");
  }
  return absl::OkStatus();
}

// The corner and extent of rows [first, first + count); of a scalar only its own shape.
struct RowBlock {
  Shape offset, extent;
};

absl::StatusOr<RowBlock> RowsOf(const File& file, const std::string& name, const Handle& array,
                                std::int64_t first, std::int64_t count) {
  PLAIT_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(file, name, array));
  if (shape.empty())
    return absl::InvalidArgumentError(absl::StrCat(Where(file, name), ": a scalar has no rows"));
  RowBlock block{Shape(shape.size(), 0), shape};
  block.offset[0] = first;
  block.extent[0] = count;
  PLAIT_RETURN_IF_ERROR(CheckBlock(file, name, shape, block.offset, block.extent));
  return block;
}

}  // namespace

template <typename T>
absl::StatusOr<std::vector<T>> ReadBlock(const File& file, const std::string& name, const Shape& offset,
                                         const Shape& extent) {
  QuietHdf5 quiet;
  PLAIT_ASSIGN_OR_RETURN(const Handle array, OpenArray(file, name));
  PLAIT_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(file, name, array));
  PLAIT_RETURN_IF_ERROR(CheckBlock(file, name, shape, offset, extent));
  PLAIT_RETURN_IF_ERROR(CheckRoom(file, name, array, extent));
  std::vector<T> values(Elements(extent));
  PLAIT_RETURN_IF_ERROR(ReadBlockInto<T>(file, name, array, offset, extent, absl::MakeSpan(values)));
  return values;
}

template <typename T>
absl::Status ReadRowsInto(const File& file, const std::string& name, std::int64_t first, std::int64_t count,
                          absl::Span<T> out) {
  QuietHdf5 quiet;
  PLAIT_ASSIGN_OR_RETURN(const Handle array, OpenArray(file, name));
  PLAIT_ASSIGN_OR_RETURN(const RowBlock block, RowsOf(file, name, array, first, count));
  if (Elements(block.extent) != static_cast<std::int64_t>(out.size())) {
    return absl::InvalidArgumentError(absl::StrCat(Where(file, name), ": rows of extent ",
                                                   ShapeText(block.extent), " do not fit a buffer of ",
                                                   out.size()));
  }
  return ReadBlockInto<T>(file, name, array, block.offset, block.extent, out);
}

template <typename T>
absl::StatusOr<std::vector<T>> ReadRows(const File& file, const std::string& name, std::int64_t first,
                                        std::int64_t count) {
  QuietHdf5 quiet;
  PLAIT_ASSIGN_OR_RETURN(const Handle array, OpenArray(file, name));
  PLAIT_ASSIGN_OR_RETURN(const RowBlock block, RowsOf(file, name, array, first, count));
  PLAIT_RETURN_IF_ERROR(CheckRoom(file, name, array, block.extent));
  std::vector<T> values(Elements(block.extent));
  PLAIT_RETURN_IF_ERROR(
      ReadBlockInto<T>(file, name, array, block.offset, block.extent, absl::MakeSpan(values)));
  return values;
}

template <typename T>
absl::Status CreateGrowing(File& file, const std::string& name, std::int64_t rows, std::int64_t chunk_rows,
                           T fill, const Shape& row_shape) {
  QuietHdf5 quiet;
  std::vector<hsize_t> extent = Extents(row_shape);
  extent.insert(extent.begin(), rows);
  std::vector<hsize_t> chunk = extent, limit = extent;
  chunk[0] = chunk_rows;
  limit[0] = H5S_UNLIMITED;
  const Handle space(H5Screate_simple(extent.size(), extent.data(), limit.data()));
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_chunk(creation.id(), chunk.size(), chunk.data());
  H5Pset_fill_value(creation.id(), TypeOf<T>(), &fill);
  H5Pset_attr_creation_order(creation.id(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  const Handle array(
      H5Dcreate2(file.id(), name.c_str(), TypeOf<T>(), space.id(), H5P_DEFAULT, creation.id(), H5P_DEFAULT));
  if (!array.ok()) return Hdf5Error(Where(file, name), "cannot be created");
  return absl::OkStatus();
}

absl::Status Resize(File& file, const std::string& name, std::int64_t rows) {
  QuietHdf5 quiet;
  PLAIT_ASSIGN_OR_RETURN(const Handle array, OpenArray(file, name));
  PLAIT_ASSIGN_OR_RETURN(Shape shape, ShapeOf(file, name, array));
  if (shape.empty())
    return absl::InvalidArgumentError(absl::StrCat(Where(file, name), ": a scalar has no rows"));
  shape[0] = rows;
  if (H5Dset_extent(array.id(), Extents(shape).data()) < 0)
    return Hdf5Error(Where(file, name), "cannot be resized");
  return absl::OkStatus();
}

template <typename T>
absl::Status WriteRows(File& file, const std::string& name, std::int64_t first, absl::Span<const T> values) {
  QuietHdf5 quiet;
  PLAIT_ASSIGN_OR_RETURN(const Handle array, OpenArray(file, name));
  const std::int64_t count = values.size();
  PLAIT_ASSIGN_OR_RETURN(const RowBlock row, RowsOf(file, name, array, 0, 0));
  const std::int64_t width = Elements(Shape(row.extent.begin() + 1, row.extent.end()));
  if (width == 0 || count % width != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(Where(file, name), ": ", count, " values are not a multiple of the row size ", width));
  }
  PLAIT_ASSIGN_OR_RETURN(const RowBlock block, RowsOf(file, name, array, first, count / width));
  if (values.empty()) return absl::OkStatus();
  const Handle stored = BlockSpace(array, block.offset, block.extent);
  const hsize_t extent = count;
  const Handle memory(H5Screate_simple(1, &extent, nullptr));
  if (H5Dwrite(array.id(), TypeOf<T>(), memory.id(), stored.id(), H5P_DEFAULT, values.data()) < 0) {
    return Hdf5Error(Where(file, name), "cannot be written");
  }
  return absl::OkStatus();
}

absl::Status SetAttribute(File& file, const std::string& object, const std::string& name,
                          const std::string& text) {
  QuietHdf5 quiet;
  // Fixed length, as netCDF reads it; HDF5 has no text of no characters, so an empty one is a single NUL.
  const Handle type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.id(), text.empty() ? 1 : text.size());
  H5Tset_strpad(type.id(), H5T_STR_NULLPAD);
  H5Tset_cset(type.id(), H5T_CSET_UTF8);
  return WriteAttribute(file, object, name, type.id(), text.c_str());
}

absl::Status SetAttribute(File& file, const std::string& object, const std::string& name,
                          std::int64_t value) {
  return WriteAttribute(file, object, name, H5T_NATIVE_INT64, &value);
}

bool HasAttribute(const File& file, const std::string& object, const std::string& name) {
  QuietHdf5 quiet;
  const absl::StatusOr<Handle> owner = OpenObject(file, object);
  return owner.ok() && H5Aexists(owner->id(), name.c_str()) > 0;
}

absl::StatusOr<std::string> TextAttribute(const File& file, const std::string& object,
                                          const std::string& name) {
  QuietHdf5 quiet;
  PLAIT_ASSIGN_OR_RETURN(const Handle attribute, OpenAttribute(file, object, name));
  const Handle type(H5Aget_type(attribute.id()));
  if (H5Tget_class(type.id()) != H5T_STRING || H5Tis_variable_str(type.id()) > 0) {
    return absl::InvalidArgumentError(absl::StrCat(AttributeWhere(file, object, name), ": not a text"));
  }
  const Handle space(H5Aget_space(attribute.id()));
  if (H5Sget_simple_extent_npoints(space.id()) != 1 || H5Tget_size(type.id()) > kLongestText) {
    return absl::DataLossError(
        absl::StrCat(AttributeWhere(file, object, name), ": damaged, expected one text"));
  }
  std::string text(H5Tget_size(type.id()), '\0');
  if (H5Aread(attribute.id(), type.id(), text.data()) < 0) {
    return Hdf5Error(AttributeWhere(file, object, name), "cannot be read");
  }
  text.resize(std::strlen(text.c_str()));
  return text;
}

absl::StatusOr<std::int64_t> IntAttribute(const File& file, const std::string& object,
                                          const std::string& name) {
  QuietHdf5 quiet;
  PLAIT_ASSIGN_OR_RETURN(const Handle attribute, OpenAttribute(file, object, name));
  const Handle type(H5Aget_type(attribute.id())), space(H5Aget_space(attribute.id()));
  if (H5Tget_class(type.id()) != H5T_INTEGER || H5Sget_simple_extent_npoints(space.id()) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(AttributeWhere(file, object, name), ": expected an integer"));
  }
  std::int64_t value = 0;
  if (H5Aread(attribute.id(), H5T_NATIVE_INT64, &value) >= 0) return value;
  return Hdf5Error(AttributeWhere(file, object, name), "cannot be read as a number");
}

#define PLAIT_INSTANTIATE(T)                                                                          \
  template absl::Status WriteArray<T>(File&, const std::string&, absl::Span<const T>, const Shape&);  \
  template absl::StatusOr<std::vector<T>> ReadArray<T>(const File&, const std::string&);              \
  template absl::StatusOr<std::vector<T>> ReadBlock<T>(const File&, const std::string&, const Shape&, \
                                                       const Shape&);                                 \
  template absl::Status ReadRowsInto<T>(const File&, const std::string&, std::int64_t, std::int64_t,  \
                                        absl::Span<T>);                                               \
  template absl::StatusOr<std::vector<T>> ReadRows<T>(const File&, const std::string&, std::int64_t,  \
                                                      std::int64_t);                                  \
  template absl::Status CreateGrowing<T>(File&, const std::string&, std::int64_t, std::int64_t, T,    \
                                         const Shape&);                                               \
  template absl::Status WriteRows<T>(File&, const std::string&, std::int64_t, absl::Span<const T>);

PLAIT_INSTANTIATE(float)
PLAIT_INSTANTIATE(double)
PLAIT_INSTANTIATE(std::int64_t)
PLAIT_INSTANTIATE(std::uint64_t)
PLAIT_INSTANTIATE(std::int32_t)
PLAIT_INSTANTIATE(std::uint32_t)
PLAIT_INSTANTIATE(std::int16_t)
PLAIT_INSTANTIATE(std::uint16_t)
PLAIT_INSTANTIATE(std::uint8_t)
#undef PLAIT_INSTANTIATE

}  // namespace plait::data
