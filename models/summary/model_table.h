// The table of a model's layers that torchinfo prints: shapes, parameters, work, memory.
//
//   const Layer root = gpt::LayersOf(options, batch, seq);       // models give their rows, as plain data
//   std::puts(TableText(root, {.input_bytes = 8 * batch * seq}).c_str());
//
//   ==========================================================================================
//   Layer (type:depth-idx)                   Output Shape              Param #
//   ==========================================================================================
//   GPT                                      [64, 1024, 65]            --
//   ├─ModuleDict: 1-1                        --                        --
//   │    └─Embedding: 2-1                    [64, 1024, 768]           49,920
//   │    └─ModuleList: 2-4                   --                        --
//   │    │    └─Block: 3-1                   [64, 1024, 768]           7,079,424
//   │    │    └─Block: 3-2 to 3-12 (each)    [64, 1024, 768]           7,079,424
//   ├─Linear: 1-2                            [64, 1024, 65]            (shared)
//   ==========================================================================================
//   Total params: 85,790,208
//   Trainable params: 85,790,208
//   Non-trainable params: 0
//   Total mult-adds (T): 6.81
//   ==========================================================================================
//   Input size (MB): 0.52
//   Forward/backward pass size (MB): 53995.90
//   Params size (MB): 343.16
//   Estimated Total Size (MB): 54339.58
//   ==========================================================================================
//
// As torchinfo: a MB is 10^6 bytes; "forward/backward pass" are the outputs of layers with parameters, twice,
// once for the value and once for the gradient. Unlike torchinfo, mult-adds are those of the whole sequence:
// a linear layer's weights count for every row (torchinfo: once a sample), and attention's own products
// count; Counting::kTorchinfo is for tables that are compared with its own. No tensors here: a table costs
// nothing for models of any size. Local.
#ifndef PLAIT_MODELS_SUMMARY_MODEL_TABLE_H_
#define PLAIT_MODELS_SUMMARY_MODEL_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace plait::models {

// A row, and the rows below it.
struct Layer {
  std::string type;                        // "Linear"
  std::vector<std::int64_t> output_shape;  // empty: "--"
  std::int64_t parameters = 0;             // without those of `children`
  std::int64_t mult_adds = 0;              // of the batch, without those of `children`
  bool shared = false;                     // its parameters are another row's: not counted again
  std::int64_t repeat = 1;                 // so many of them in a row, all alike
  std::vector<Layer> children = {};
};

// A linear layer with `output_shape` (..., outputs); its weights, and biases, work on every row.
Layer LinearLayer(std::vector<std::int64_t> output_shape, std::int64_t inputs, bool bias);
// A table of `rows` vectors as long as the last of `output_shape`.
Layer EmbeddingLayer(std::vector<std::int64_t> output_shape, std::int64_t rows);

struct Totals {
  std::int64_t parameters = 0;
  std::int64_t mult_adds = 0;
  std::int64_t outputs = 0;  // elements that layers with parameters and without children give
  // What torchinfo has instead: mult-adds of such layers, a convolution's weights at every place, others once
  // a sample; parameters of such layers alone.
  std::int64_t torchinfo_mult_adds = 0, torchinfo_parameters = 0;
};

Totals TotalsOf(const Layer& root);

// Of mult-adds, and of the bytes of parameters.
enum class Counting { kAll, kTorchinfo };

struct TableOptions {
  std::int64_t depth = 3;          // rows below are left out; theirs counts in the row above
  std::int64_t input_bytes = 0;    // of a batch
  std::int64_t element_bytes = 4;  // of a parameter and of an output
  Counting counting = Counting::kAll;
};

// Bytes of the estimated total: input, outputs twice, parameters.
std::int64_t TotalBytes(const Layer& root, const TableOptions& options);

// Lines as above, without a line end behind the last. Of repeated layers the first is shown with its
// children, the others in one line.
std::string TableText(const Layer& root, const TableOptions& options);

}  // namespace plait::models

#endif  // PLAIT_MODELS_SUMMARY_MODEL_TABLE_H_
