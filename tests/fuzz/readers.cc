#include "tests/fuzz/readers.h"

extern "C" int Take_address_table(const std::uint8_t* data, std::size_t size);
extern "C" int Take_byte_pair(const std::uint8_t* data, std::size_t size);
extern "C" int Take_checkpoint(const std::uint8_t* data, std::size_t size);
extern "C" int Take_cifar10(const std::uint8_t* data, std::size_t size);
extern "C" int Take_cluster(const std::uint8_t* data, std::size_t size);
extern "C" int Take_config(const std::uint8_t* data, std::size_t size);
extern "C" int Take_document_index(const std::uint8_t* data, std::size_t size);
extern "C" int Take_document_line(const std::uint8_t* data, std::size_t size);
extern "C" int Take_flag_file(const std::uint8_t* data, std::size_t size);
extern "C" int Take_flags(const std::uint8_t* data, std::size_t size);
extern "C" int Take_har_text(const std::uint8_t* data, std::size_t size);
extern "C" int Take_hdf5(const std::uint8_t* data, std::size_t size);
extern "C" int Take_hosts(const std::uint8_t* data, std::size_t size);
extern "C" int Take_idx(const std::uint8_t* data, std::size_t size);
extern "C" int Take_image(const std::uint8_t* data, std::size_t size);
extern "C" int Take_journal(const std::uint8_t* data, std::size_t size);
extern "C" int Take_matlab(const std::uint8_t* data, std::size_t size);
extern "C" int Take_recordings(const std::uint8_t* data, std::size_t size);
extern "C" int Take_safetensors(const std::uint8_t* data, std::size_t size);
extern "C" int Take_sentence_piece(const std::uint8_t* data, std::size_t size);
extern "C" int Take_shard_index(const std::uint8_t* data, std::size_t size);
extern "C" int Take_tokenizer_settings(const std::uint8_t* data, std::size_t size);
extern "C" int Take_trace(const std::uint8_t* data, std::size_t size);
extern "C" int Take_video(const std::uint8_t* data, std::size_t size);

namespace plait::fuzz {

const std::vector<Reader>& Readers() {
  static const auto& readers = *new std::vector<Reader>{
      {"address_table", Take_address_table},
      {"byte_pair", Take_byte_pair},
      {"checkpoint", Take_checkpoint},
      {"cifar10", Take_cifar10},
      {"cluster", Take_cluster},
      {"config", Take_config},
      {"document_index", Take_document_index},
      {"document_line", Take_document_line},
      {"flag_file", Take_flag_file},
      {"flags", Take_flags},
      {"har_text", Take_har_text},
      {"hdf5", Take_hdf5, 20},
      {"hosts", Take_hosts},
      {"idx", Take_idx},
      {"image", Take_image, 100},
      {"journal", Take_journal},
      {"matlab", Take_matlab},
      {"recordings", Take_recordings},
      {"safetensors", Take_safetensors},
      {"sentence_piece", Take_sentence_piece},
      {"shard_index", Take_shard_index},
      {"tokenizer_settings", Take_tokenizer_settings},
      {"trace", Take_trace},
      {"video", Take_video, 40},
  };
  return readers;
}

}  // namespace plait::fuzz
