// How flags' values are described and shown. Private to base/flags.h.
#ifndef PLAIT_BASE_FLAG_VALUE_H_
#define PLAIT_BASE_FLAG_VALUE_H_

#include <string>

#include "absl/flags/commandlineflag.h"
#include "base/flags.h"

namespace plait::base::internal {

// "an integer", "an integer up to 2147483647", "an integer from 0 to 4294967295", "a number", "true or false"; empty
// for any other type.
std::string ExpectedValue(const absl::CommandLineFlag& flag);

// As Python's repr() writes it: True, 128.0, 1e-05, 'text'.
std::string ShownValue(const absl::CommandLineFlag& flag);

std::string ExpectedValue(const BoundFlag::Value& value);
std::string ShownValue(const BoundFlag::Value& value);

// The shortest decimal number that reads back as `value`.
std::string PythonFloat(double value);
std::string PythonFloat(float value);
std::string PythonString(const std::string& text);

}  // namespace plait::base::internal

#endif  // PLAIT_BASE_FLAG_VALUE_H_
