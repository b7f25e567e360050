// What the tests of models' files in Hugging Face's layout share.
#ifndef PLAIT_MODELS_HUGGING_FACE_TESTING_SAFETENSORS_FILES_H_
#define PLAIT_MODELS_HUGGING_FACE_TESTING_SAFETENSORS_FILES_H_

#include <ATen/core/Tensor.h>

#include <string>

#include "models/hugging_face/safetensors.h"
#include "models/module_model.h"

namespace plait::hugging_face::testing {

// A folder of the test's own, made where it is not there yet.
std::string Folder(const std::string& name);

// Normal numbers for all parameters, norms and biases too.
void DrawParameters(const models::ModuleModel& model);

// Reads `files` into `model`, which is on the meta device, a unit at a time, as engines do. Its parameters must be those
// of `expected` then, bit by bit.
void ExpectReads(const Weights& files, const models::ModuleModel& model, const models::ModuleModel& expected);

// Writes the files in `folder` again with `replacement` (float32) as tensor `name`, or without that where it is undefined.
void ReplaceTensor(const std::string& folder, const std::string& name, const at::Tensor& replacement);

}  // namespace plait::hugging_face::testing

#endif  // PLAIT_MODELS_HUGGING_FACE_TESTING_SAFETENSORS_FILES_H_
