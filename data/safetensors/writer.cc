#include "data/safetensors/writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"

namespace plait::data::safetensors {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian, bytes are not swapped");

std::vector<const TensorView*> InFileOrder(absl::Span<const TensorView> tensors) {
  std::vector<const TensorView*> order;
  for (const TensorView& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    return a->info.dtype != b->info.dtype ? a->info.dtype > b->info.dtype : a->name < b->name;
  });
  return order;
}

absl::StatusOr<Header> Lay(const std::vector<const TensorView*>& order, const Metadata& metadata) {
  Header header = {.metadata = metadata, .entries = {}};
  std::int64_t begin = 0;
  for (const TensorView* tensor : order) {
    const absl::StatusOr<std::int64_t> bytes = ByteCount(tensor->info);
    PLAIT_RETURN_IF_ERROR(base::Prefixed(bytes.status(), absl::StrCat("tensor ", Quoted(tensor->name))));
    PLAIT_CHECK(*bytes == 0 || tensor->data != nullptr) << "no data for tensor " << tensor->name;
    std::int64_t end = 0;
    if (__builtin_add_overflow(begin, *bytes, &end)) {
      return absl::InvalidArgumentError("the tensors have more than 2^63 - 1 bytes together");
    }
    header.entries.push_back({tensor->name, tensor->info, begin, end});
    begin = end;
  }
  return header;
}

// Streams of C keep errno; those of C++ need not.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path)
      : path_(path), file_(std::fopen(path.c_str(), "wb"), &std::fclose) {}

  absl::Status Append(const void* data, std::int64_t bytes) {
    if (file_ == nullptr) return Failed();
    if (bytes == 0 || std::fwrite(data, 1, bytes, file_.get()) == static_cast<std::size_t>(bytes)) {
      return absl::OkStatus();
    }
    return Failed();
  }

  absl::Status Close() {
    std::FILE* file = file_.release();
    if (file == nullptr || std::fclose(file) != 0) return Failed();
    return absl::OkStatus();
  }

 private:
  absl::Status Failed() const {
    return absl::ErrnoToStatus(errno, absl::StrCat(path_, ": cannot be written"));
  }

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

absl::Status Fill(const std::string& path, const std::string& header,
                  const std::vector<const TensorView*>& order) {
  OutputFile file(path);
  const auto length = std::bit_cast<std::array<char, 8>>(static_cast<std::uint64_t>(header.size()));
  PLAIT_RETURN_IF_ERROR(file.Append(length.data(), length.size()));
  PLAIT_RETURN_IF_ERROR(file.Append(header.data(), static_cast<std::int64_t>(header.size())));
  for (const TensorView* tensor : order) {
    PLAIT_RETURN_IF_ERROR(file.Append(tensor->data, *ByteCount(tensor->info)));
  }
  return file.Close();
}

}  // namespace

absl::Status WriteFile(const std::string& path, absl::Span<const TensorView> tensors,
                       const Metadata& metadata) {
  return WriteFile(path, tensors, metadata, {});
}

absl::Status WriteFile(const std::string& path, absl::Span<const TensorView> tensors,
                       const Metadata& metadata, const WriteSteps& steps) {
  const std::vector<const TensorView*> order = InFileOrder(tensors);
  const absl::StatusOr<Header> header = Lay(order, metadata);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(header.status(), path));
  const absl::StatusOr<std::string> text = HeaderText(*header);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(text.status(), path));
  const std::int64_t data_bytes = header->entries.empty() ? 0 : header->entries.back().end;
  // The disk is asked for room before anything is written; no disk has more than the largest number of bytes.
  std::int64_t file_bytes = 0;
  if (__builtin_add_overflow(data_bytes, 8 + static_cast<std::int64_t>(text->size()), &file_bytes)) {
    file_bytes = data_bytes;
  }
  return WriteAtomically(path, std::max(file_bytes, steps.needed_bytes), [&](const std::string& partial) {
    PLAIT_RETURN_IF_ERROR(Fill(partial, *text, order));
    return steps.before_replacing ? steps.before_replacing() : absl::OkStatus();
  });
}

}  // namespace plait::data::safetensors
