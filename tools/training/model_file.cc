#include "tools/training/model_file.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "comm/long_barrier.h"
#include "data/safetensors/model.h"

namespace plait::training {
namespace {

namespace safetensors = data::safetensors;

safetensors::DType FileType(at::ScalarType type) {
  if (type == at::kDouble) return safetensors::DType::kF64;
  if (type == at::kHalf) return safetensors::DType::kF16;
  return type == at::kBFloat16 ? safetensors::DType::kBF16 : safetensors::DType::kF32;
}

}  // namespace

absl::Status ProbeModelFolder(const std::string& folder, const Run& run) {
  absl::Status writable;
  if (run.world.rank() == 0 && !folder.empty()) {
    writable = base::Prefixed(base::ProbeWritableFolder(base::FromUser(folder)), "--save-model");
  }
  return run.world.Agree(writable);
}

absl::Status WriteModel(const Run& run, const std::map<std::string, at::Tensor>& values,
                        absl::FunctionRef<absl::Status()> write) {
  std::int64_t bytes[1] = {0};
  for (const auto& [name, value] : values) bytes[0] += static_cast<std::int64_t>(value.nbytes());
  run.world.Broadcast(comm::BufferOf(absl::MakeSpan(bytes)), 0);
  const absl::Status written = run.world.rank() == 0 ? write() : absl::OkStatus();
  comm::LongBarrier(run.world, comm::SecondsToWrite(bytes[0]));
  return base::Prefixed(run.world.Agree(written), "--save-model");
}

absl::Status SaveModel(ShardedModel& model, const std::string& folder, const Run& run) {
  if (folder.empty() || run.stopped) return absl::OkStatus();
  const std::map<std::string, at::Tensor> values = model.WholeParameters();
  PLAIT_RETURN_IF_ERROR(model.status());
  const std::string path = base::FromUser(folder);
  PLAIT_RETURN_IF_ERROR(WriteModel(run, values, [&] {
    std::vector<safetensors::TensorView> views;
    for (const auto& [name, value] : values) {
      views.push_back({name, {FileType(value.scalar_type()), value.sizes().vec()}, value.const_data_ptr()});
    }
    return safetensors::WriteModel(path, views, {});
  }));
  run.log.Info(absl::StrCat("model saved in ", path, "/model.safetensors"));
  return absl::OkStatus();
}

}  // namespace plait::training
