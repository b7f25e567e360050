// Numbers as text: the shortest decimal that reads back as the same double.
#ifndef PLAIT_DATA_HISTORY_NUMBER_TEXT_H_
#define PLAIT_DATA_HISTORY_NUMBER_TEXT_H_

#include <charconv>
#include <cmath>
#include <string>

namespace plait::data {

// Appends "2.5", "1e-300", "nan", "inf", "-inf".
inline void AppendNumber(double value, std::string& out) {
  char text[32];
  if (std::isnan(value)) {
    out += "nan";  // without a sign, which NaNs have, too
    return;
  }
  out.append(text, std::to_chars(text, text + sizeof(text), value).ptr - text);
}

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_NUMBER_TEXT_H_
