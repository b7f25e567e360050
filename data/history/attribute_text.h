// Attributes of HDF5 files as text: strings of any kind, and numbers, several as "1, 2". Local.
#ifndef PLAIT_DATA_HISTORY_ATTRIBUTE_TEXT_H_
#define PLAIT_DATA_HISTORY_ATTRIBUTE_TEXT_H_

#include <hdf5.h>

#include <string>
#include <utility>
#include <vector>

namespace plait::data {

// The attributes of an array, a group or a file, by name, in the order of the file. Those of the formats (netCDF-4,
// dimension scales), and those that are no text or more than 64 numbers, are left out.
std::vector<std::pair<std::string, std::string>> AttributesAsText(hid_t object);

// "" where the object has no such attribute.
std::string AttributeAsText(hid_t object, const std::string& name);

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_ATTRIBUTE_TEXT_H_
