// Records of TensorFlow's TFRecord files, of which TensorBoard's event files are made:
//   uint64 length, uint32 masked_crc32c(length), byte[length], uint32 masked_crc32c(bytes), little-endian.
#ifndef PLAIT_DATA_HISTORY_TENSORBOARD_RECORD_H_
#define PLAIT_DATA_HISTORY_TENSORBOARD_RECORD_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace plait::data {

// CRC-32C (Castagnoli; RFC 3720, appendix B.4).
std::uint32_t Crc32c(absl::string_view bytes);

// One record around `bytes`.
std::string TfRecord(absl::string_view bytes);

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_TENSORBOARD_RECORD_H_
