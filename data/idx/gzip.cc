#include "data/idx/gzip.h"

#include <zlib.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plait::data {
namespace {

// zlib counts in 32 bits.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;
constexpr std::size_t kFirstRoom = 1 << 16;

class Inflater {
 public:
  explicit Inflater(absl::string_view gzip) : left_(gzip) {
    constexpr int kLargestWindow = 15, kGzipOnly = 16;
    started_ = inflateInit2(&stream_, kLargestWindow + kGzipOnly) == Z_OK;
  }
  ~Inflater() {
    if (started_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool started() const { return started_; }
  bool done() const { return done_; }

  // Unpacks some bytes into the room, and says how many.
  absl::StatusOr<std::size_t> Unpack(char* room, std::size_t bytes) {
    if (stream_.avail_in == 0) Feed();
    stream_.next_out = reinterpret_cast<Bytef*>(room);
    stream_.avail_out = static_cast<uInt>(std::min(bytes, kMostAtOnce));
    const int code = inflate(&stream_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
      PLAIT_RETURN_IF_ERROR(EndMember());
    } else if (code == Z_BUF_ERROR) {
      return absl::DataLossError("gzip data are cut short");
    } else if (code != Z_OK) {
      return absl::DataLossError(absl::StrCat("gzip data are damaged", stream_.msg == nullptr ? "" : ": ",
                                              stream_.msg == nullptr ? "" : stream_.msg));
    }
    return reinterpret_cast<char*>(stream_.next_out) - room;
  }

 private:
  void Feed() {
    const std::size_t bytes = std::min(left_.size(), kMostAtOnce);
    // zlib only reads there.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(left_.data()));
    stream_.avail_in = static_cast<uInt>(bytes);
    left_.remove_prefix(bytes);
  }

  absl::Status EndMember() {
    if (stream_.avail_in == 0) Feed();
    done_ = stream_.avail_in == 0;
    if (done_) return absl::OkStatus();
    if (*stream_.next_in != 0x1f) {
      return absl::DataLossError("gzip data are damaged: something else follows their end");
    }
    inflateReset(&stream_);
    return absl::OkStatus();
  }

  z_stream stream_{};
  absl::string_view left_;  // not yet given to zlib
  bool started_ = false;
  bool done_ = false;
};

}  // namespace

bool IsGzip(absl::string_view bytes) { return absl::StartsWith(bytes, "\x1f\x8b"); }

absl::StatusOr<std::string> Gunzip(absl::string_view gzip, std::size_t at_most) {
  Inflater inflater(gzip);
  if (!inflater.started()) return absl::ResourceExhaustedError("no memory to unpack gzip data");
  std::string bytes;
  std::size_t used = 0;
  while (!inflater.done() && used < at_most) {
    if (used == bytes.size()) bytes.resize(std::min(at_most, std::max(kFirstRoom, 2 * used)));
    PLAIT_ASSIGN_OR_RETURN(const std::size_t more, inflater.Unpack(&bytes[used], bytes.size() - used));
    used += more;
  }
  bytes.resize(used);
  return bytes;
}

}  // namespace plait::data
