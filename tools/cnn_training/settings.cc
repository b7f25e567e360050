#include "tools/cnn_training/settings.h"

#include "base/status_macros.h"

namespace plait::cnn_training {

using training::AtLeast;
using training::Between;
using training::OnResume;

void CnnSettings::Bind(training::SettingsTable& table) {
  table.Group("Training");
  BindBatch(table, "samples");
  table.Add("test_batch_size", &test_batch_size, "test batch size of a data-parallel rank");
  table.Add("epochs", &epochs, "number of epochs", OnResume::kAdopt);
  table.Add("lr", &lr, "learning rate of AdamW in the first epoch", OnResume::kAdopt);
  table.Add("gamma", &gamma, "factor by which the learning rate is multiplied after each epoch",
            OnResume::kAdopt);
  table.Add("weight_decay", &weight_decay, "decoupled, of all parameters", OnResume::kSame);
  table.Add("dropout1", &dropout1, "dropout probability behind the convolutions", OnResume::kSame);
  table.Add("dropout2", &dropout2, "dropout probability of the hidden layer", OnResume::kSame);
  table.Group("Data");
  table.Add("data", &data,
            "directory of IDX files (MNIST); by default Fashion-MNIST of Debian's package "
            "dataset-fashion-mnist, else a synthetic stand-in");
  table.Add("max_samples", &max_samples, "train and test on the first N samples; 0: all");
  BindParallel(table);
  BindFiles(table, "epochs");
  table.Add("save_model", &save_model, "directory to write model.safetensors to, at the end");
}

absl::Status CnnSettings::Check(const std::vector<comm::MeshAxis>& axes) const {
  PLAIT_RETURN_IF_ERROR(CheckNoDryRun());
  PLAIT_RETURN_IF_ERROR(AtLeast("test-batch-size", test_batch_size, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("epochs", epochs, 1));
  PLAIT_RETURN_IF_ERROR(AtLeast("max-samples", max_samples, 0));
  PLAIT_RETURN_IF_ERROR(Between("lr", lr, 0, 1e30));
  PLAIT_RETURN_IF_ERROR(Between("gamma", gamma, 0, 1));
  PLAIT_RETURN_IF_ERROR(Between("weight-decay", weight_decay, 0, 1e3));
  PLAIT_RETURN_IF_ERROR(training::Fraction("dropout1", dropout1));
  PLAIT_RETURN_IF_ERROR(training::Fraction("dropout2", dropout2));
  return CheckShared(axes);
}

}  // namespace plait::cnn_training
