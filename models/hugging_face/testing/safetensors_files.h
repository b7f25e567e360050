// Helpers for tests of models' files in Hugging Face's layout.
#ifndef PLAIT_MODELS_HUGGING_FACE_TESTING_SAFETENSORS_FILES_H_
#define PLAIT_MODELS_HUGGING_FACE_TESTING_SAFETENSORS_FILES_H_

#include <ATen/core/Tensor.h>

#include <string>

#include "models/hugging_face/safetensors.h"
#include "models/module_model.h"

namespace plait::hugging_face::testing {

// Returns a folder below the test's temporary folder; creates it if necessary.
std::string Folder(const std::string& name);

// Draws all parameters from a normal distribution, norms and biases too.
void DrawParameters(const models::ModuleModel& model);

// Materializes and reads `model`, which is on the meta device, one unit at a time, as engines do. Expects its
// parameters to be bitwise equal to those of `expected`.
void ExpectReads(const Weights& files, const models::ModuleModel& model, const models::ModuleModel& expected);

// Rewrites the files in `folder` with `replacement` (float32) as tensor `name`, or without it if undefined.
void ReplaceTensor(const std::string& folder, const std::string& name, const at::Tensor& replacement);

}  // namespace plait::hugging_face::testing

#endif  // PLAIT_MODELS_HUGGING_FACE_TESTING_SAFETENSORS_FILES_H_
