// Attributes of HDF5 objects as text, whoever wrote them. Private to data/history/history_table.h.
#ifndef PLAIT_DATA_HISTORY_HISTORY_TABLE_ATTRIBUTES_H_
#define PLAIT_DATA_HISTORY_HISTORY_TABLE_ATTRIBUTES_H_

#include <hdf5.h>

#include <string>
#include <utility>
#include <vector>

namespace plait::data::internal {

// Names and values of the object's attributes, in order of creation where the file keeps it. Texts of fixed
// and variable length, whole and floating-point numbers, and short arrays of them ("1, 2, 3"); others are
// left out, and so are those that netCDF-4 and dimension scales keep for themselves.
std::vector<std::pair<std::string, std::string>> AttributesAsText(hid_t object);

// One of them; "" where there is none.
std::string AttributeAsText(hid_t object, const std::string& name);

}  // namespace plait::data::internal

#endif  // PLAIT_DATA_HISTORY_HISTORY_TABLE_ATTRIBUTES_H_
