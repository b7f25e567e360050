#include "data/safetensors/writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/file_descriptor.h"
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

absl::Status Fill(const std::string& path, const std::string& header,
                  const std::vector<const TensorView*>& order) {
  PLAIT_ASSIGN_OR_RETURN(const base::FileDescriptor file,
                         base::FileDescriptor::Open(path, base::FileDescriptor::Mode::kCreate));
  std::int64_t written = 0;
  const auto append = [&](const void* data, std::int64_t bytes) {
    written += bytes;
    return file.WriteAt(data, bytes, written - bytes);
  };
  const auto length = std::bit_cast<std::array<char, 8>>(static_cast<std::uint64_t>(header.size()));
  PLAIT_RETURN_IF_ERROR(append(length.data(), length.size()));
  PLAIT_RETURN_IF_ERROR(append(header.data(), static_cast<std::int64_t>(header.size())));
  for (const TensorView* tensor : order) {
    PLAIT_RETURN_IF_ERROR(append(tensor->data, *ByteCount(tensor->info)));
  }
  return absl::OkStatus();
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
  // Free space is checked before anything is written. On overflow data_bytes alone exceed any disk.
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
