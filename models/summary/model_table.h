// torchinfo's table of a model's layers: shapes, parameters, mult-adds, memory.
//
//   const Layer root = gpt::LayersOf(options, batch, seq);       // plain data, without building a model
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
// (abridged). As in torchinfo, a MB is 10^6 bytes, and "forward/backward pass" counts the outputs of layers with
// parameters twice, for values and gradients. Unlike in torchinfo, mult-adds are those of the whole sequence: a
// linear layer's weights count for every token (torchinfo: once per sample), and attention's own products count;
// Counting::kTorchinfo is for comparison with torchinfo's tables. No tensors are allocated. Local.
#ifndef PLAIT_MODELS_SUMMARY_MODEL_TABLE_H_
#define PLAIT_MODELS_SUMMARY_MODEL_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace plait::models {

// A row of the table, and the rows below it.
struct Layer {
  std::string type;                        // "Linear"
  std::vector<std::int64_t> output_shape;  // empty: "--"
  std::int64_t parameters = 0;             // without those of `children`
  std::int64_t mult_adds = 0;              // of the batch, without those of `children`
  bool shared = false;                     // its parameters belong to another row and are not counted again
  std::int64_t repeat = 1;                 // number of identical consecutive layers
  std::vector<Layer> children = {};
};

// A linear layer with `output_shape` (..., outputs). Mult-adds: weights and biases for every row.
Layer LinearLayer(std::vector<std::int64_t> output_shape, std::int64_t inputs, bool bias);
// An embedding table (rows, output_shape.back()).
Layer EmbeddingLayer(std::vector<std::int64_t> output_shape, std::int64_t rows);

struct Totals {
  std::int64_t parameters = 0;
  std::int64_t mult_adds = 0;
  std::int64_t outputs = 0;  // output elements of layers with parameters and without children
  // As torchinfo counts: mult-adds of such layers only, a convolution's weights at every pixel, others once per
  // sample; parameters of such layers only.
  std::int64_t torchinfo_mult_adds = 0, torchinfo_parameters = 0;
};

Totals TotalsOf(const Layer& root);

// How mult-adds and the bytes of parameters are counted.
enum class Counting { kAll, kTorchinfo };

struct TableOptions {
  std::int64_t depth = 3;          // deeper rows are omitted; their parameters count in the row above
  std::int64_t input_bytes = 0;    // of a batch of inputs
  std::int64_t element_bytes = 4;  // of a parameter and of an output
  Counting counting = Counting::kAll;
};

// Bytes of the estimated total: input, outputs twice, parameters.
std::int64_t TotalBytes(const Layer& root, const TableOptions& options);

// The table as above, without a final newline. Of repeated layers the first is shown with its children, the others in
// one line.
std::string TableText(const Layer& root, const TableOptions& options);

}  // namespace plait::models

#endif  // PLAIT_MODELS_SUMMARY_MODEL_TABLE_H_
