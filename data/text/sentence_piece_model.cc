#include "data/text/sentence_piece_model.h"

#include <sentencepiece_processor.h>

#include <utility>

namespace plait::data {
namespace {

constexpr const char kSpace[] = "\xE2\x96\x81";  // U+2581 stands for a space

class Model final : public SentencePieceModel {
 public:
  explicit Model(std::unique_ptr<sentencepiece::SentencePieceProcessor> processor)
      : processor_(std::move(processor)) {}

  int size() const override { return processor_->GetPieceSize(); }
  int begin_id() const override { return processor_->bos_id(); }
  std::vector<int> Encode(const std::string& text) const override { return processor_->EncodeAsIds(text); }
  std::string BytesOf(int id) const override {
    if (processor_->IsControl(id)) return "";
    const std::string& piece = processor_->IdToPiece(id);
    if (processor_->IsByte(id))
      return {static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16))};  // "<0x0A>"
    std::string bytes = piece;
    for (std::size_t at = bytes.find(kSpace); at != std::string::npos; at = bytes.find(kSpace, at)) {
      bytes.replace(at, sizeof kSpace - 1, " ");
    }
    return bytes;
  }

 private:
  std::unique_ptr<const sentencepiece::SentencePieceProcessor> processor_;
};

}  // namespace

std::unique_ptr<const SentencePieceModel> SentencePieceModel::Parse(const std::string& bytes,
                                                                    std::string& error) {
  auto processor = std::make_unique<sentencepiece::SentencePieceProcessor>();
  const sentencepiece::util::Status status = processor->LoadFromSerializedProto(bytes);
  if (status.ok() && processor->GetPieceSize() > 0)
    return std::make_unique<const Model>(std::move(processor));
  error = status.ok() ? "no tokens" : status.error_message();
  return nullptr;
}

}  // namespace plait::data
