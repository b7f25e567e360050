#include "data/matlab/inflate.h"

#include <zlib.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace plait::data::matlab {

absl::StatusOr<std::string> Inflate(absl::string_view data) {
  constexpr std::size_t kLeast = 512, kUsualPacking = 4, kMostAtOnce = std::size_t{1} << 30;
  const std::size_t first_room = std::max(kLeast, kUsualPacking * data.size());
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return absl::ResourceExhaustedError("no memory to unpack a variable");
  // zlib only reads there; an element has less than 2^32 bytes.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  std::string bytes;
  int code = Z_OK;
  while (code == Z_OK) {
    const std::size_t used = bytes.size();
    bytes.resize(used + std::min(std::max(used, first_room), kMostAtOnce));
    stream.next_out = reinterpret_cast<Bytef*>(&bytes[used]);
    stream.avail_out = static_cast<uInt>(bytes.size() - used);
    code = inflate(&stream, Z_NO_FLUSH);
    bytes.resize(bytes.size() - stream.avail_out);
  }
  const std::string why = stream.msg == nullptr ? "" : absl::StrCat(": ", stream.msg);
  inflateEnd(&stream);
  if (code == Z_STREAM_END) return bytes;
  if (code == Z_BUF_ERROR) return absl::DataLossError("cut short: a compressed variable");
  return absl::DataLossError(absl::StrCat("damaged: a compressed variable", why));
}

}  // namespace plait::data::matlab
