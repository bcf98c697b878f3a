// Parsing a file relies on the documented layout, not on the reader under test.
#include "tests/format/editable_file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>
#undef XXH_INLINE_ALL

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "format/model_file.h"

namespace kinglet {
namespace {

template <class T>
T LoadAt(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, &bytes[at], sizeof(T));
  return value;
}

template <class T>
void StoreAt(std::vector<std::byte>& bytes, size_t at, T value) {
  std::memcpy(&bytes[at], &value, sizeof(T));
}

std::vector<std::byte> PackHeader(const editable::ModelT& header) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(editable::Model::Pack(builder, &header), editable::ModelIdentifier());
  const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  return {bytes.begin(), bytes.end()};
}

size_t RoundUp64(size_t position) { return (position + 63) & ~size_t{63}; }

template <class Kind, class Get>
Kind& FindKind(editable::ModelT& header, Get get) {
  for (auto& block : header.blocks) {
    if (auto& kind = get(*block)) return *kind;
  }
  throw std::runtime_error("no such block");
}

}  // namespace

EditableFile EditableFile::FromDraft(const ModelDraft& draft) {
  const Result<std::vector<std::byte>> bytes = SerialiseModel(draft);
  if (!bytes.ok()) throw std::runtime_error(bytes.status().message());
  return FromBytes(*bytes);
}

EditableFile EditableFile::FromBytes(std::span<const std::byte> bytes) {
  EditableFile file;
  // The copy has the alignment FlatBuffers needs.
  const auto header_size = LoadAt<uint64_t>(bytes, 24);
  const std::vector<std::byte> header(bytes.begin() + 64,
                                      bytes.begin() + 64 + static_cast<ptrdiff_t>(header_size));
  editable::GetModel(header.data())->UnPackTo(&file.header);
  for (const editable::Segment& segment : file.header.segments) {
    const auto begin = bytes.begin() + static_cast<ptrdiff_t>(segment.offset());
    file.segments.emplace_back(begin, begin + static_cast<ptrdiff_t>(segment.size()));
  }
  return file;
}

std::vector<std::byte> EditableFile::Build() {
  header.segments.resize(segments.size());
  size_t position = 64 + PackHeader(header).size();
  for (size_t i = 0; i < segments.size(); ++i) {
    const size_t offset = RoundUp64(position);
    header.segments[i] = editable::Segment(offset, segments[i].size(),
                                           XXH3_64bits(segments[i].data(), segments[i].size()));
    position = offset + segments[i].size();
  }
  return BuildAsIs();
}

std::vector<std::byte> EditableFile::BuildAsIs() const {
  const std::vector<std::byte> packed = PackHeader(header);
  std::vector<std::byte> rest;
  for (const std::vector<std::byte>& segment : segments) {
    rest.resize(RoundUp64(64 + packed.size() + rest.size()) - 64 - packed.size());
    rest.insert(rest.end(), segment.begin(), segment.end());
  }
  return Frame64(packed, rest);
}

std::vector<std::byte> Frame64(std::span<const std::byte> header,
                               std::span<const std::byte> after_header) {
  std::vector<std::byte> file(64 + header.size() + after_header.size());
  const unsigned char start[12] = {'K', 'G', 'L', '1', 13, 10, 26, 10, 1};
  std::memcpy(file.data(), start, sizeof(start));
  std::copy(header.begin(), header.end(), file.begin() + 64);
  std::copy(after_header.begin(), after_header.end(),
            file.end() - static_cast<ptrdiff_t>(after_header.size()));
  StoreAt<uint64_t>(file, 16, file.size());
  StoreAt<uint64_t>(file, 24, header.size());
  RepairFrame(file);
  return file;
}

void RepairFrame(std::vector<std::byte>& file) {
  const auto header_size = LoadAt<uint64_t>(file, 24);
  if (header_size <= file.size() - 64) {
    const XXH128_hash_t digest = XXH3_128bits(file.data() + 64, header_size);
    StoreAt<uint64_t>(file, 32, digest.low64);
    StoreAt<uint64_t>(file, 40, digest.high64);
  }
  StoreAt<uint64_t>(file, 56, XXH3_64bits(file.data(), 56));
}

Status OpenStatus(std::span<const std::byte> bytes) { return ModelFile::FromBytes(bytes).status(); }

bool IsRefusalOf(const std::string& message, const std::string& where) {
  const size_t expected = message.find(": expected ");
  const size_t found = message.find(", found ");
  return message.starts_with("model in memory: ") && expected != std::string::npos &&
         found != std::string::npos && expected < found &&
         message.substr(0, expected).find(where) != std::string::npos &&
         message.find('\n') == std::string::npos;
}

editable::TensorT& EditableFile::Tensor(const std::string& name) {
  for (auto& tensor : header.tensors) {
    if (tensor->name == name) return *tensor;
  }
  throw std::runtime_error("no tensor " + name);
}

std::vector<std::byte>& EditableFile::Mask(const std::string& name) {
  return segments[Tensor(name).mask->bits];
}
std::vector<std::byte>& EditableFile::Codes(const std::string& name) {
  return segments[Tensor(name).packed->codes];
}
std::vector<std::byte>& EditableFile::Scales(const std::string& name) {
  return segments[Tensor(name).packed->scales->words];
}
std::vector<std::byte>& EditableFile::Values(const std::string& name) {
  return segments[Tensor(name).dense->values];
}
editable::AdaptiveEmbeddingT& EditableFile::Embedding() {
  return FindKind<editable::AdaptiveEmbeddingT>(
      header, [](auto& block) -> auto& { return block.adaptive_embedding; });
}
editable::TransformerDecoderT& EditableFile::Decoder() {
  return FindKind<editable::TransformerDecoderT>(
      header, [](auto& block) -> auto& { return block.transformer_decoder; });
}
editable::AdaptiveSoftmaxT& EditableFile::Softmax() {
  return FindKind<editable::AdaptiveSoftmaxT>(
      header, [](auto& block) -> auto& { return block.adaptive_softmax; });
}
editable::RecurrentDecoderT& EditableFile::Recurrent() {
  return FindKind<editable::RecurrentDecoderT>(
      header, [](auto& block) -> auto& { return block.recurrent_decoder; });
}
editable::BagClassifierT& EditableFile::Classifier() {
  return FindKind<editable::BagClassifierT>(
      header, [](auto& block) -> auto& { return block.bag_classifier; });
}
editable::NeuralCacheT& EditableFile::Cache() {
  return FindKind<editable::NeuralCacheT>(
      header, [](auto& block) -> auto& { return block.neural_cache; });
}

}  // namespace kinglet
