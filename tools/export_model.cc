// Writes a checkpoint's model in Hugging Face's layout: tools/model_export/README.md.
#include <cstdio>
#include <string>

#include "base/flags.h"
#include "base/path.h"
#include "base/process_exit.h"
#include "comm/interrupt.h"
#include "tools/model_export/export.h"
#include "tools/training/settings_table.h"

namespace plait::model_export {
namespace {

constexpr int kUsageError = 2;

int Main(int argc, char** argv) {
  std::string checkpoint, out;
  training::SettingsTable table;
  table.Group("Files");
  table.Add("checkpoint", &checkpoint,
            "checkpoint of train_gpt, train_llama or train_vit, or directory of checkpoints");
  table.Add("out", &out, "directory to write config.json and model.safetensors to");
  base::ParseFlagsOrExit(
      argc, argv,
      table.Usage("export_model", "Writes the model of a checkpoint in Hugging Face's layout.",
                  {"export_model --checkpoint=run --out=hf",
                   "export_model --checkpoint=run/step-000000500 --out=hf"}));
  const comm::InterruptHandler interrupt;
  if (checkpoint.empty() || out.empty()) {
    std::fprintf(stderr, "export_model: expected --checkpoint=DIR and --out=DIR\n");
    return kUsageError;
  }
  const absl::StatusOr<std::string> done = ExportModel(base::FromUser(checkpoint), base::FromUser(out));
  if (!done.ok()) {
    std::fprintf(stderr, "export_model: %s\n", std::string(done.status().message()).c_str());
    return 1;
  }
  std::printf("%s: model written to %s\n", done->c_str(), base::FromUser(out).c_str());
  return 0;
}

}  // namespace
}  // namespace plait::model_export

int main(int argc, char** argv) {
  return plait::base::RunTool("export_model", [&] { return plait::model_export::Main(argc, argv); });
}
