#include "converters/tensor_passes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "format/model_file.h"
#include "tests/support/model_builder.h"

namespace kinglet::tensor_passes_test {
namespace {

// A model whose tensors are read late, and then listed in `read`, or, if that is null, are present.
LoadedModel Loaded(std::vector<TensorId>* read) {
  LoadedModel model;
  model.draft = TinyMicronet();
  for (TensorId id = 0; id < model.draft.tensors.size(); ++id) {
    model.quantisable.push_back(id);
    if (model.draft.tensors[id].name.ends_with("qkv.weight")) model.prunable.push_back(id);
  }
  if (read == nullptr) return model;
  model.read = [read, tensors = model.draft.tensors](TensorId id, EncodedTensor& tensor) -> Status {
    read->push_back(id);
    tensor.values = tensors[id].values;
    return {};
  };
  for (EncodedTensor& tensor : model.draft.tensors) tensor.values = DenseF32{};
  return model;
}

Result<PackedModel> Pack(TensorPasses& passes, LoadedModel& model) {
  ModelPacker packer;
  for (TensorId id = 0; id < model.draft.tensors.size(); ++id) {
    EncodedTensor& tensor = model.draft.tensors[id];
    KINGLET_RETURN_IF_ERROR(passes.Read(id, tensor));
    KINGLET_RETURN_IF_ERROR(packer.Add(tensor, passes.Apply(id, tensor)));
  }
  return packer.Finish(model.draft.description, model.draft.vocabulary,
                       model.draft.source_vocabulary);
}

std::vector<std::byte> BytesOf(const Result<PackedModel>& packed) {
  EXPECT_TRUE(packed.ok()) << packed.status().message();
  return packed.ok() ? packed->layout.Bytes() : std::vector<std::byte>();
}

// Read early (ReadAll), late, or present from the start: every tensor is read once, in order, and
// the file is the same.
TEST(TensorPasses, EarlyOrLateTheFileIsTheSame) {
  for (const TensorPasses::Options& options :
       {TensorPasses::Options{}, TensorPasses::Options{0.5, {}}, TensorPasses::Options{{}, 5},
        TensorPasses::Options{0.7, 9}}) {
    std::vector<std::vector<std::byte>> files;
    for (const int early : {0, 1, 2}) {
      std::vector<TensorId> read;
      LoadedModel model = Loaded(early == 2 ? nullptr : &read);
      const size_t tensors = model.draft.tensors.size();
      TensorPasses passes(options, model);
      if (early == 1) {
        ASSERT_TRUE(passes.ReadAll().ok());
      }
      files.push_back(BytesOf(Pack(passes, model)));
      EXPECT_EQ(read.size(), early == 2 ? 0 : tensors);
      EXPECT_TRUE(std::is_sorted(read.begin(), read.end()));
      EXPECT_EQ(passes.counts().tensors, tensors);
    }
    for (const auto& file : files) EXPECT_TRUE(file == files[0]);
  }
}

TEST(TensorPasses, CountsWhatTheFileHas) {
  LoadedModel model = Loaded(nullptr);
  model.draft.tensors[1].derived = true;
  TensorPasses passes({0.5, 9}, model);
  const auto bytes = BytesOf(Pack(passes, model));
  const auto file = ModelFile::FromBytes(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  uint64_t parameters = 0, nonzeros = 0;
  for (const TensorView& view : (*file)->tensors()) {
    parameters += Parameters(view);
    if (view.derived) continue;
    const std::vector<float> values = DecodedValues(view);
    nonzeros += static_cast<uint64_t>(
        std::count_if(values.begin(), values.end(), [](float value) { return value != 0; }));
    EXPECT_EQ(view.quantised(), true) << view.name;
  }
  EXPECT_EQ(passes.counts().parameters, parameters);
  EXPECT_EQ(passes.counts().nonzero_parameters, nonzeros);
  EXPECT_LT(nonzeros, parameters);
}

TEST(TensorPasses, RecoversBeforeItPrunes) {
  LoadedModel model = Loaded(nullptr);
  model.bits = 9;
  EncodedTensor& tensor = model.draft.tensors[model.prunable.at(0)];
  const uint64_t cols = Cols(tensor.shape);
  std::vector<float>& values = std::get<DenseF32>(tensor.values).values;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = i % cols == 0 ? 255.0F / 128 : static_cast<float>(i % 50) / 128;
  }
  TensorPasses passes({0.9, {}}, model);
  ASSERT_TRUE(passes.Read(model.prunable[0], tensor).ok());
  EXPECT_FALSE(passes.Apply(model.prunable[0], tensor).has_value());
  ASSERT_TRUE(std::holds_alternative<Quantised>(tensor.values));
  EXPECT_EQ(std::get<Quantised>(tensor.values).scales[0], 1.0F / 128);
  EXPECT_TRUE(tensor.pruned);
}

TEST(TensorPasses, PassesFailuresOn) {
  std::vector<TensorId> read;
  LoadedModel model = Loaded(&read);
  model.read = [](TensorId, EncodedTensor&) { return Status(KINGLET_IO_ERROR, "no disk"); };
  TensorPasses passes({}, model);
  EXPECT_EQ(passes.ReadAll().message(), "no disk");
  EXPECT_EQ(Pack(passes, model).status().message(), "no disk");
}

}  // namespace
}  // namespace kinglet::tensor_passes_test
