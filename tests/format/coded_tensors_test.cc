// Coded tables in a file: written, read back, and refused where they break a rule.
#include <gtest/gtest.h>

#include <algorithm>

#include "format/coded_rows.h"
#include "format/limits.h"
#include "format/writer.h"
#include "tests/format/hostile_edits.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/unpack.h"

namespace kinglet::coded_tensors_test {
namespace {

TinyRecurrentOptions CodedOptions() {
  TinyRecurrentOptions options;
  options.tails = 0;
  options.input_coding = TinyCoding{3, {5}};
  options.head_coding = TinyCoding{3, {4, 1, 6}};
  return options;
}

const EncodedTensor* FindCoded(const ModelDraft& draft, size_t pools) {
  for (const EncodedTensor& tensor : draft.tensors) {
    const auto* coded = std::get_if<Coded>(&tensor.values);
    if (coded != nullptr && coded->scheme.pools.size() == pools) return &tensor;
  }
  return nullptr;
}

std::vector<std::byte> CodedFile() { return SerialiseModel(TinyRecurrent(CodedOptions())).value(); }

editable::TensorT& CodedTensor(EditableFile& file, size_t pools) {
  for (const auto& tensor : file.header.tensors) {
    if (tensor->coded && tensor->coded->pools.size() == pools) return *tensor;
  }
  throw std::logic_error("no coded tensor");
}

TEST(CodedTensors, ComeBackAsTheyWereWritten) {
  const ModelDraft draft = TinyRecurrent(CodedOptions());
  const auto file = ModelFile::FromBytes(CodedFile());
  ASSERT_TRUE(file.ok()) << file.status().message();
  const ModelDraft back = UnpackModel(**file);
  EXPECT_EQ(SerialiseModel(back).value(), CodedFile());
  for (const size_t pools : {1, 3}) {
    const EncodedTensor* written = FindCoded(draft, pools);
    const EncodedTensor* read = FindCoded(back, pools);
    ASSERT_TRUE(written != nullptr && read != nullptr);
    const auto& from = std::get<Coded>(written->values);
    const auto& to = std::get<Coded>(read->values);
    EXPECT_EQ(std::get<std::vector<uint32_t>>(to.codes),
              std::get<std::vector<uint32_t>>(from.codes));
    EXPECT_EQ(to.scheme.pools, from.scheme.pools);
    EXPECT_EQ(to.scheme.codebook, from.scheme.codebook);
  }
}

TEST(CodedTensors, HashedOnesTakeNoBytes) {
  ModelDraft draft = TinyRecurrent(CodedOptions());
  for (EncodedTensor& tensor : draft.tensors) {
    if (auto* coded = std::get_if<Coded>(&tensor.values)) coded->codes = HashSeed{77};
  }
  const auto bytes = SerialiseModel(draft);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto file = ModelFile::FromBytes(*bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ((*file)->ledger().Total(LedgerPart::kCodes), 0u);
  EXPECT_EQ(SerialiseModel(UnpackModel(**file)).value(), *bytes);
}

TEST(CodedTensors, WritersRefuseWhatDoesNotFit) {
  const auto refusal = [](auto edit) {
    ModelDraft draft = TinyRecurrent(CodedOptions());
    for (EncodedTensor& tensor : draft.tensors) {
      auto* coded = std::get_if<Coded>(&tensor.values);
      if (coded != nullptr && coded->scheme.pools.size() == 3) edit(tensor, *coded);
    }
    return SerialiseModel(draft).status().message();
  };
  using Codes = std::vector<uint32_t>;
  EXPECT_NE(refusal([](EncodedTensor&, Coded& coded) {
              std::get<Codes>(coded.codes)[1] = 1;
            }).find("code 1: expected a code below its pool's size 1, found 1"),
            std::string::npos);
  EXPECT_NE(refusal([](EncodedTensor&, Coded& coded) {
              std::get<Codes>(coded.codes).pop_back();
            }).find("number of codes"),
            std::string::npos);
  EXPECT_NE(refusal([](EncodedTensor& tensor, Coded&) { tensor.pruned = true; }).find("mask"),
            std::string::npos);
  EXPECT_NE(refusal([](EncodedTensor&, Coded& coded) {
              coded.scheme.positions = 0;
            }).find("positions: expected 1 to 8192, found 0"),
            std::string::npos);
}

TEST(CodedTensors, HostileOnesAreRefused) {
  struct Case {
    const char* where;
    void (*edit)(editable::TensorT& tensor);
  };
  const Case cases[] = {
      {"combine",
       [](editable::TensorT& t) { t.coded->combine = static_cast<editable::Combine>(3); }},
      {"positions", [](editable::TensorT& t) { t.coded->positions = 0; }},
      {"positions", [](editable::TensorT& t) { t.coded->positions = 2; }},
      {"positions", [](editable::TensorT& t) { t.coded->positions = 0xFFFFFFFF; }},
      {"pools", [](editable::TensorT& t) { t.coded->pools.clear(); }},
      {"pools", [](editable::TensorT& t) { t.coded->pools.pop_back(); }},
      {"pools", [](editable::TensorT& t) { t.coded->pools[1] = 0; }},
      {"pools", [](editable::TensorT& t) { t.coded->pools.assign(3, 0xFFFFFFFF); }},
      {"pools", [](editable::TensorT& t) { t.coded->pools.assign(kMaxPositions + 1, 1); }},
      {"codebook", [](editable::TensorT& t) { t.coded->pools[0] = 5; }},
      {"codebook", [](editable::TensorT& t) { t.coded->codebook = 1000; }},
      {"seed", [](editable::TensorT& t) { t.coded->seed = 1; }},
      {"codes, segment", [](editable::TensorT& t) { t.coded->codes = 1000; }},
      {"one of a dense",
       [](editable::TensorT& t) { t.dense = std::make_unique<editable::DenseT>(); }},
      {"mask", [](editable::TensorT& t) { t.mask = std::make_unique<editable::MaskT>(); }},
  };
  for (const Case& hostile : cases) {
    EditableFile file = EditableFile::FromBytes(CodedFile());
    hostile.edit(CodedTensor(file, 3));
    const Status status = ModelFile::FromBytes(file.Build()).status();
    EXPECT_EQ(status.code(), KINGLET_INVALID_MODEL) << hostile.where;
    EXPECT_NE(status.message().find(hostile.where), std::string::npos) << status.message();
  }
}

TEST(CodedTensors, ACodebookIsNotCodedItself) {
  EditableFile file = EditableFile::FromBytes(CodedFile());
  editable::TensorT& own = CodedTensor(file, 3);
  const auto& tensors = file.header.tensors;
  const auto at = std::find_if(tensors.begin(), tensors.end(),
                               [&](const auto& tensor) { return tensor.get() == &own; });
  own.coded->codebook = static_cast<uint32_t>(at - tensors.begin());
  const Status status = ModelFile::FromBytes(file.Build()).status();
  EXPECT_NE(status.message().find("expected a tensor that is not coded itself"), std::string::npos)
      << status.message();
}

// Computed codes take no bytes, so only this limit bounds the work.
TEST(CodedTensors, ComputedCodesAreBounded) {
  const auto refused = [](uint64_t rows, uint32_t positions) {
    ModelDraft draft = TinyRecurrent(CodedOptions());
    for (EncodedTensor& tensor : draft.tensors) {
      auto* coded = std::get_if<Coded>(&tensor.values);
      if (coded == nullptr || coded->scheme.pools.size() != 1) continue;
      coded->codes = HashSeed{1};
      coded->scheme.combine = Combine::kSum;
      coded->scheme.positions = positions;
      draft.tensors[coded->scheme.codebook].shape[1] = tensor.shape[1];
      auto& codebook = std::get<DenseF32>(draft.tensors[coded->scheme.codebook].values);
      codebook.values.resize(Count(draft.tensors[coded->scheme.codebook].shape));
      tensor.shape[0] = rows;
    }
    return SerialiseModel(draft).status().message();
  };
  EXPECT_NE(refused((1 << 24) + 1, 1).find("rows: expected at most 16777216 whose codes"),
            std::string::npos);
  EXPECT_NE(refused((1 << 22) + 1, 1024).find("expected at most 4294967296 that are computed"),
            std::string::npos);
  EXPECT_EQ(refused(1 << 24, 256).find("that are computed"), std::string::npos);
}

TEST(CodedTensors, EveryTruncationAndFlippedByteIsRefused) {
  const std::vector<std::byte> bytes = CodedFile();
  for (size_t size = 0; size < bytes.size(); size += 7) {
    EXPECT_FALSE(ModelFile::FromBytes({bytes.data(), size}).ok()) << size;
  }
  for (size_t at = 0; at < bytes.size(); at += 3) {
    std::vector<std::byte> flipped = bytes;
    flipped[at] ^= std::byte{1} << (at % 8);
    EXPECT_FALSE(ModelFile::FromBytes(flipped).ok()) << at;
  }
}

}  // namespace
}  // namespace kinglet::coded_tensors_test
