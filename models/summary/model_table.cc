#include "models/summary/model_table.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace plait::models {
namespace {

constexpr std::size_t kNameWidth = 40, kShapeWidth = 25, kLineWidth = 90;

// "1,234,567".
std::string Grouped(std::int64_t number) {
  const std::string digits = absl::StrCat(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string Megabytes(std::int64_t bytes) {
  const std::int64_t hundredths = (bytes + 5000) / 10000;
  return absl::StrFormat("%d.%02d", hundredths / 100, hundredths % 100);
}

std::string MultAddsLine(std::int64_t count) {
  const std::pair<const char*, double> units[] = {{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}};
  for (const auto& [unit, size] : units) {
    if (static_cast<double>(count) >= size) {
      return absl::StrFormat("Total mult-adds (%s): %.2f", unit, static_cast<double>(count) / size);
    }
  }
  return absl::StrCat("Total mult-adds: ", count);
}

std::string ShapeText(const std::vector<std::int64_t>& shape) {
  return shape.empty() ? "--" : absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

struct Row {
  std::string name, shape, parameters;
};

// Numbers the layers of each depth in order, shown or not, as torchinfo does.
class Rows {
 public:
  explicit Rows(std::int64_t depth) : limit_(depth) {}

  void Add(const Layer& layer, std::int64_t depth) {
    const std::int64_t first = ++Number(depth);
    const std::string name = depth == 0 ? layer.type : absl::StrCat(layer.type, ": ", depth, "-", first);
    Push(depth, name, layer, Parameters(layer, depth));
    for (const Layer& child : layer.children) Add(child, depth + 1);
    if (layer.repeat == 1) return;
    for (std::int64_t i = 1; i < layer.repeat; ++i) Count(layer, depth);
    const std::int64_t last = first + layer.repeat - 1;
    const std::string to = last > first + 1 ? absl::StrCat(" to ", depth, "-", last, " (each)") : "";
    Push(depth, absl::StrCat(layer.type, ": ", depth, "-", first + 1, to), layer, Whole(layer));
  }

  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::int64_t& Number(std::int64_t depth) {
    if (static_cast<std::int64_t>(numbers_.size()) <= depth) numbers_.resize(depth + 1, 0);
    return numbers_[depth];
  }

  void Count(const Layer& layer, std::int64_t depth) {
    ++Number(depth);
    for (const Layer& child : layer.children) {
      for (std::int64_t i = 0; i < child.repeat; ++i) Count(child, depth + 1);
    }
  }

  void Push(std::int64_t depth, const std::string& name, const Layer& layer, std::string parameters) {
    if (depth > limit_) return;
    std::string indent;
    for (std::int64_t i = 1; i < depth; ++i) indent += "│    ";
    if (depth > 0) indent += depth == 1 ? "├─" : "└─";
    rows_.push_back({indent + name, ShapeText(layer.output_shape), std::move(parameters)});
  }

  std::string Whole(const Layer& layer) const {
    Layer one = layer;
    one.repeat = 1;
    return Grouped(TotalsOf(one).parameters);
  }

  // Its own parameters, including those of children that are not shown.
  std::string Parameters(const Layer& layer, std::int64_t depth) const {
    if (layer.shared) return "(shared)";
    if (depth == limit_ && !layer.children.empty()) return Whole(layer);
    return layer.parameters == 0 ? "--" : Grouped(layer.parameters);
  }

  std::int64_t limit_;
  std::vector<std::int64_t> numbers_;
  std::vector<Row> rows_;
};

// Width of UTF-8 text in columns.
std::size_t Columns(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
}

std::string Padded(const std::string& text, std::size_t columns) {
  return text + std::string(columns - std::min(columns, Columns(text)), ' ') + " ";
}

std::int64_t Product(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// Parameters whose bytes count.
std::int64_t CountedParameters(const Totals& totals, const TableOptions& options) {
  return options.counting == Counting::kTorchinfo ? totals.torchinfo_parameters : totals.parameters;
}

}  // namespace

Layer LinearLayer(std::vector<std::int64_t> output_shape, std::int64_t inputs, bool bias) {
  const std::int64_t outputs = output_shape.back(), weights = outputs * (inputs + (bias ? 1 : 0));
  const std::int64_t rows = Product(output_shape) / outputs;
  return {.type = "Linear",
          .output_shape = std::move(output_shape),
          .parameters = weights,
          .mult_adds = rows * weights};
}

Layer EmbeddingLayer(std::vector<std::int64_t> output_shape, std::int64_t rows) {
  const std::int64_t parameters = rows * output_shape.back();
  return {.type = "Embedding", .output_shape = std::move(output_shape), .parameters = parameters};
}

Totals TotalsOf(const Layer& root) {
  Totals totals = {.parameters = root.shared ? 0 : root.parameters, .mult_adds = root.mult_adds};
  if (root.parameters > 0 && root.children.empty()) {
    const std::int64_t outputs = Product(root.output_shape), samples = root.output_shape[0];
    const std::int64_t places = root.type == "Conv2d" ? outputs / root.output_shape[1] : samples;
    totals.outputs = outputs;
    totals.torchinfo_mult_adds = places * root.parameters;
    totals.torchinfo_parameters = totals.parameters;
  }
  constexpr std::int64_t Totals::*kSums[] = {&Totals::parameters, &Totals::mult_adds, &Totals::outputs,
                                             &Totals::torchinfo_mult_adds, &Totals::torchinfo_parameters};
  for (const Layer& child : root.children) {
    const Totals below = TotalsOf(child);
    for (const auto sum : kSums) totals.*sum += below.*sum;
  }
  for (const auto sum : kSums) totals.*sum *= root.repeat;
  return totals;
}

std::int64_t TotalBytes(const Layer& root, const TableOptions& options) {
  const Totals totals = TotalsOf(root);
  return options.input_bytes +
         (2 * totals.outputs + CountedParameters(totals, options)) * options.element_bytes;
}

std::string TableText(const Layer& root, const TableOptions& options) {
  Rows rows(options.depth);
  rows.Add(root, 0);
  std::size_t name_width = kNameWidth, shape_width = kShapeWidth;
  for (const Row& row : rows.rows()) {
    name_width = std::max(name_width, Columns(row.name));
    shape_width = std::max(shape_width, Columns(row.shape));
  }
  const std::string line =
      std::string(kLineWidth + (name_width - kNameWidth) + (shape_width - kShapeWidth), '=') + "\n";
  const auto text_of = [&](const Row& row) {
    return Padded(row.name, name_width) + Padded(row.shape, shape_width) + row.parameters + "\n";
  };
  std::string text = line + text_of({"Layer (type:depth-idx)", "Output Shape", "Param #"}) + line;
  for (const Row& row : rows.rows()) text += text_of(row);
  const Totals totals = TotalsOf(root);
  const std::int64_t mult_adds =
      options.counting == Counting::kTorchinfo ? totals.torchinfo_mult_adds : totals.mult_adds;
  absl::StrAppend(&text, line, "Total params: ", Grouped(totals.parameters), "\n",  //
                  "Trainable params: ", Grouped(totals.parameters), "\n",           //
                  "Non-trainable params: 0\n", MultAddsLine(mult_adds), "\n");
  absl::StrAppend(&text, line, "Input size (MB): ", Megabytes(options.input_bytes), "\n",
                  "Forward/backward pass size (MB): ", Megabytes(2 * totals.outputs * options.element_bytes),
                  "\n",  //
                  "Params size (MB): ", Megabytes(CountedParameters(totals, options) * options.element_bytes),
                  "\n",  //
                  "Estimated Total Size (MB): ", Megabytes(TotalBytes(root, options)), "\n", line);
  text.pop_back();
  return text;
}

}  // namespace plait::models
