#include "models/hugging_face/testing/safetensors_files.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <vector>

#include "data/hdf5/atomic_file.h"

namespace plait::hugging_face::testing {

namespace st = data::safetensors;

std::string Folder(const std::string& name) {
  const std::string folder = ::testing::TempDir() + "/" + name;
  EXPECT_TRUE(data::MakeFolders(folder).ok());
  return folder;
}

void DrawParameters(const models::ModuleModel& model) {
  for (const at::Tensor& parameter : model.parameters()) {
    parameter.detach().copy_(at::randn(parameter.sizes()));
  }
}

void ExpectReads(const Weights& files, const models::ModuleModel& model,
                 const models::ModuleModel& expected) {
  const std::vector<at::Tensor> wanted = expected.parameters();
  const std::vector<models::ParameterUnit> units = model.units();
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    for (const models::ParameterSpec& parameter : units[unit].parameters) {
      models::Materialize(parameter.tensor, at::empty(parameter.tensor.sizes(), wanted[0].scalar_type()));
    }
    ASSERT_TRUE(files.ReadUnit(model, unit).ok());
  }
  const std::vector<at::Tensor> read = model.parameters();
  ASSERT_EQ(read.size(), wanted.size());
  for (std::size_t j = 0; j < read.size(); ++j) EXPECT_TRUE(read[j].equal(wanted[j])) << j;
}

void ReplaceTensor(const std::string& folder, const std::string& name, const at::Tensor& replacement) {
  const auto model = st::Model::Open(folder);
  std::vector<st::TensorView> tensors;
  for (const std::string& other : model->Names()) {
    if (other != name) tensors.push_back(*model->Find(other));
  }
  if (replacement.defined()) {
    tensors.push_back({name, {st::DType::kF32, replacement.sizes().vec()}, replacement.const_data_ptr()});
  }
  EXPECT_TRUE(st::WriteModel(folder, tensors, {}).ok());
}

}  // namespace plait::hugging_face::testing
