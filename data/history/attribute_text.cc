#include "data/history/attribute_text.h"

#include <cstdint>
#include <cstring>
#include <set>

#include "absl/strings/str_join.h"
#include "data/hdf5/handle.h"

namespace plait::data {
namespace {

constexpr hssize_t kMostElements = 64;

bool IsOfTheFormat(const std::string& name) {
  static const std::set<std::string>& names = *new std::set<std::string>{
      "CLASS",         "NAME",          "REFERENCE_LIST",      "DIMENSION_LIST", "DIMENSION_LABELS",
      "_NCProperties", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict",    "Conventions",
      "_FillValue"};
  return names.count(name) > 0;
}

std::string FixedText(const Handle& attribute, const Handle& type) {
  std::string text(H5Tget_size(type.id()), '\0');
  if (H5Aread(attribute.id(), type.id(), text.data()) < 0) return "";
  text.resize(strnlen(text.data(), text.size()));
  return text;
}

std::string VariableText(const Handle& attribute, const Handle& type) {
  char* text = nullptr;
  if (H5Aread(attribute.id(), type.id(), &text) < 0 || text == nullptr) return "";
  std::string copy(text);
  H5free_memory(text);
  return copy;
}

template <typename T>
std::string Numbers(const Handle& attribute, hid_t type, hssize_t elements) {
  std::vector<T> values(elements);
  if (H5Aread(attribute.id(), type, values.data()) < 0) return "";
  return absl::StrJoin(values, ", ");
}

// The attribute as text; false if it has none.
std::pair<bool, std::string> Text(const Handle& attribute) {
  const Handle type(H5Aget_type(attribute.id()));
  const Handle space(H5Aget_space(attribute.id()));
  const hssize_t elements = H5Sget_simple_extent_npoints(space.id());
  if (elements < 0 || elements > kMostElements) return {false, ""};
  switch (H5Tget_class(type.id())) {
    case H5T_STRING:
      if (elements != 1) return {elements == 0, ""};
      return {true,
              H5Tis_variable_str(type.id()) > 0 ? VariableText(attribute, type) : FixedText(attribute, type)};
    case H5T_INTEGER:
      return {true, Numbers<std::int64_t>(attribute, H5T_NATIVE_INT64, elements)};
    case H5T_FLOAT:
      return {true, Numbers<double>(attribute, H5T_NATIVE_DOUBLE, elements)};
    default:
      return {false, ""};
  }
}

herr_t KeepName(hid_t, const char* name, const H5A_info_t*, void* data) {
  static_cast<std::vector<std::string>*>(data)->push_back(name);
  return 0;
}

std::vector<std::string> Names(hid_t object) {
  std::vector<std::string> names;
  if (H5Aiterate2(object, H5_INDEX_CRT_ORDER, H5_ITER_INC, nullptr, KeepName, &names) >= 0) return names;
  names.clear();
  H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, KeepName, &names);
  return names;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> AttributesAsText(hid_t object) {
  QuietHdf5 quiet;
  std::vector<std::pair<std::string, std::string>> attributes;
  for (const std::string& name : Names(object)) {
    if (IsOfTheFormat(name)) continue;
    const Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT));
    auto [has_text, text] = Text(attribute);
    if (has_text) attributes.emplace_back(name, std::move(text));
  }
  return attributes;
}

std::string AttributeAsText(hid_t object, const std::string& name) {
  QuietHdf5 quiet;
  if (H5Aexists(object, name.c_str()) <= 0) return "";
  return Text(Handle(H5Aopen(object, name.c_str(), H5P_DEFAULT))).second;
}

}  // namespace plait::data
