#include "data/hdf5/address_table.h"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/json_depth.h"
#include "base/status_macros.h"
#include "data/hdf5/checked_array.h"
#include "data/hdf5/handle.h"

namespace plait::data {
namespace {

using Json = nlohmann::json;

constexpr absl::string_view kMagic = "plaitad1";
constexpr std::uint64_t kMostTableBytes = std::uint64_t{1} << 30;

struct Footer {
  std::uint32_t crc32 = 0;
  std::uint64_t bytes = 0;
};

absl::StatusOr<Footer> ParseFooter(absl::string_view footer) {
  if (static_cast<std::int64_t>(footer.size()) != kAddressFooterBytes ||
      footer.substr(footer.size() - kMagic.size()) != kMagic) {
    return absl::NotFoundError("has no table of addresses");
  }
  Footer parsed;
  std::memcpy(&parsed.crc32, footer.data(), sizeof(parsed.crc32));
  std::memcpy(&parsed.bytes, footer.data() + sizeof(parsed.crc32), sizeof(parsed.bytes));
  return parsed;
}

std::string FooterOf(absl::string_view text) {
  const Footer footer = {Crc32(text.data(), static_cast<std::int64_t>(text.size())), text.size()};
  std::string bytes(sizeof(footer.crc32) + sizeof(footer.bytes), '\0');
  std::memcpy(bytes.data(), &footer.crc32, sizeof(footer.crc32));
  std::memcpy(bytes.data() + sizeof(footer.crc32), &footer.bytes, sizeof(footer.bytes));
  return absl::StrCat(bytes, kMagic);
}

absl::Status Damaged(absl::string_view why) {
  return absl::DataLossError(absl::StrCat("its table of addresses is damaged: ", why));
}

// A number that is not negative and fits 63 bits.
std::optional<std::int64_t> Size(const Json& json) {
  if (!json.is_number_unsigned()) return std::nullopt;
  const auto value = json.get<std::uint64_t>();
  if (value > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::optional<std::uint32_t> Checksum(const Json& json) {
  const std::optional<std::int64_t> value = Size(json);
  if (!value.has_value() || *value > static_cast<std::int64_t>(UINT32_MAX)) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

// [offset, bytes] or [offset, bytes, crc32]
std::optional<AddressTable::Array> ArrayFrom(const Json& json, std::int64_t hdf5_bytes) {
  if (!json.is_array() || json.size() < 2 || json.size() > 3) return std::nullopt;
  const std::optional<std::int64_t> offset = Size(json[0]), bytes = Size(json[1]);
  if (!offset.has_value() || !bytes.has_value() || *offset > hdf5_bytes || *bytes > hdf5_bytes - *offset) {
    return std::nullopt;
  }
  AddressTable::Array array = {*offset, *bytes, std::nullopt};
  if (json.size() == 2) return array;
  array.crc32 = Checksum(json[2]);
  if (!array.crc32.has_value()) return std::nullopt;
  return array;
}

absl::StatusOr<AddressTable> TableFrom(const Json& json, std::int64_t hdf5_bytes) {
  constexpr std::array kParts = {"format", "integers", "arrays", "structure_crc32"};
  if (!json.is_object()) return Damaged("not a JSON object");
  for (const char* part : kParts) {
    if (!json.contains(part)) return Damaged(absl::StrCat("it has no \"", part, "\""));
  }
  AddressTable table;
  table.hdf5_bytes = hdf5_bytes;
  if (!json["format"].is_string() || !json["integers"].is_object() || !json["arrays"].is_object()) {
    return Damaged("a part of it has another type");
  }
  table.format = json["format"].get<std::string>();
  table.structure_crc32 = Checksum(json["structure_crc32"]);
  if (!table.structure_crc32.has_value()) return Damaged("\"structure_crc32\" is not a checksum");
  for (const auto& [name, value] : json["integers"].items()) {
    const bool fits = value.is_number_unsigned() ? Size(value).has_value() : value.is_number_integer();
    if (!fits) return Damaged(absl::StrCat(name, " is not an integer"));
    table.integers[name] = value.get<std::int64_t>();
  }
  for (const auto& [name, value] : json["arrays"].items()) {
    const std::optional<AddressTable::Array> array = ArrayFrom(value, hdf5_bytes);
    if (!array.has_value()) return Damaged(absl::StrCat(name, " is not inside the file"));
    table.arrays[name] = *array;
  }
  return table;
}

void AddInteger(const File& file, const char* name, AddressTable& table) {
  const absl::StatusOr<std::int64_t> value = IntAttribute(file, "/", name);
  if (value.ok()) table.integers[name] = *value;
}

herr_t VisitRootAttribute(hid_t, const char* name, const H5A_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

herr_t VisitObject(hid_t, const char* name, const H5O_info_t* about, void* names) {
  if (about->type == H5O_TYPE_DATASET) static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

void AddArray(const File& file, const std::string& path, AddressTable& table) {
  const QuietHdf5 quiet;
  const Handle array(H5Dopen2(file.id(), path.c_str(), H5P_DEFAULT));
  const Handle creation(H5Dget_create_plist(array.id()));
  if (!array.ok() || H5Pget_layout(creation.id()) != H5D_CONTIGUOUS ||
      H5Pget_external_count(creation.id()) != 0)
    return;
  const haddr_t offset = H5Dget_offset(array.id());
  const hsize_t bytes = H5Dget_storage_size(array.id());
  AddressTable::Array& entry = table.arrays[path];
  // Without elements, or never written: no place in the file.
  if (bytes > 0 && offset != HADDR_UNDEF) {
    entry = {static_cast<std::int64_t>(offset), static_cast<std::int64_t>(bytes), std::nullopt};
  }
  const absl::StatusOr<std::int64_t> crc = IntAttribute(file, path, kChecksumAttribute);
  if (crc.ok()) entry.crc32 = static_cast<std::uint32_t>(*crc);
}

}  // namespace

absl::StatusOr<AddressTable> AddressesOf(const File& file) {
  const QuietHdf5 quiet;
  AddressTable table;
  std::vector<std::string> attributes, arrays;
  hsize_t size = 0;
  if (H5Aiterate2(file.id(), H5_INDEX_NAME, H5_ITER_INC, nullptr, VisitRootAttribute, &attributes) < 0 ||
      H5Ovisit2(file.id(), H5_INDEX_NAME, H5_ITER_INC, VisitObject, &arrays, H5O_INFO_BASIC) < 0 ||
      H5Fget_filesize(file.id(), &size) < 0) {
    return Hdf5Error(file.path(), "cannot be listed");
  }
  table.hdf5_bytes = static_cast<std::int64_t>(size);
  table.format = TextAttribute(file, "/", kFormatAttribute).value_or("");
  for (const std::string& name : attributes) AddInteger(file, name.c_str(), table);
  for (const std::string& name : arrays) AddArray(file, "/" + name, table);
  for (const auto& [path, array] : table.arrays) {
    // A damaged file may say anything.
    if (array.offset >= 0 && array.bytes >= 0 && array.offset <= table.hdf5_bytes &&
        array.bytes <= table.hdf5_bytes - array.offset) {
      continue;
    }
    return absl::DataLossError(absl::StrCat(file.path(), ": ", path, ": is not inside the file"));
  }
  return table;
}

absl::StatusOr<std::string> SerializeAddresses(const AddressTable& table) {
  Json arrays = Json::object();
  for (const auto& [path, array] : table.arrays) {
    arrays[path] = {array.offset, array.bytes};
    if (array.crc32.has_value()) arrays[path].push_back(*array.crc32);
  }
  const Json json = {{"format", table.format},
                     {"integers", table.integers},
                     {"arrays", std::move(arrays)},
                     {"structure_crc32", table.structure_crc32.value_or(0)}};
  try {
    std::string text = json.dump();
    // HDF5's structures hold times: the size of the file must not depend on how many digits their checksum has.
    constexpr std::size_t kMostDigits = 10;
    text.append(kMostDigits - absl::StrCat(table.structure_crc32.value_or(0)).size(), ' ');
    return absl::StrCat(text, FooterOf(text));
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError("a name in it is not UTF-8");
  }
}

absl::Status AppendAddresses(File& file, FileImage& image) {
  PLAIT_ASSIGN_OR_RETURN(AddressTable table, AddressesOf(file));
  PLAIT_RETURN_IF_ERROR(file.Close());
  table.hdf5_bytes = image.size_bytes();
  const auto from_image = [&](std::int64_t offset, absl::Span<char> to) {
    image.Read(offset, to);
    return absl::OkStatus();
  };
  PLAIT_ASSIGN_OR_RETURN(table.structure_crc32, StructureCrc32(table, from_image));
  const absl::StatusOr<std::string> bytes = SerializeAddresses(table);
  if (!bytes.ok()) return base::Prefixed(bytes.status(), file.path() + " not written");
  image.Write(table.hdf5_bytes, *bytes);
  return absl::OkStatus();
}

absl::StatusOr<std::int64_t> AddressTableBytes(absl::string_view footer, std::int64_t file_bytes) {
  PLAIT_ASSIGN_OR_RETURN(const Footer parsed, ParseFooter(footer));
  const std::int64_t most = file_bytes - kAddressFooterBytes;
  if (most < 0 || parsed.bytes > static_cast<std::uint64_t>(most)) return Damaged("larger than the file");
  if (parsed.bytes > kMostTableBytes) return Damaged("larger than expected");
  return static_cast<std::int64_t>(parsed.bytes);
}

absl::StatusOr<AddressTable> ParseAddresses(absl::string_view text, absl::string_view footer,
                                            std::int64_t file_bytes) {
  PLAIT_ASSIGN_OR_RETURN(const Footer parsed, ParseFooter(footer));
  const auto bytes = static_cast<std::int64_t>(text.size());
  if (parsed.bytes != text.size() || parsed.crc32 != Crc32(text.data(), bytes))
    return Damaged("checksum does not match");
  if (base::JsonDepth(text) > base::kDeepestJson) return Damaged("nested too deep");
  return TableFrom(Json::parse(text, nullptr, /*allow_exceptions=*/false),
                   file_bytes - kAddressFooterBytes - bytes);
}

absl::StatusOr<std::uint32_t> StructureCrc32(
    const AddressTable& table,
    const std::function<absl::Status(std::int64_t offset, absl::Span<char> to)>& read) {
  constexpr std::int64_t kTogether = std::int64_t{1} << 20;
  std::vector<AddressTable::Array> arrays = {{table.hdf5_bytes, 0, std::nullopt}};
  for (const auto& [path, array] : table.arrays) arrays.push_back(array);
  std::sort(arrays.begin(), arrays.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  std::uint32_t crc = 0;
  std::int64_t place = 0;
  std::vector<char> bytes;
  for (const AddressTable::Array& array : arrays) {
    while (place < array.offset) {
      bytes.resize(std::min(kTogether, array.offset - place));
      PLAIT_RETURN_IF_ERROR(read(place, absl::MakeSpan(bytes)));
      crc = Crc32(bytes.data(), std::ssize(bytes), crc);
      place += std::ssize(bytes);
    }
    place = std::max(place, array.offset + array.bytes);
  }
  return crc;
}

}  // namespace plait::data
