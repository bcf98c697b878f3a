// Peak memory of a conversion: at most the output and 1.2 times the largest tensor as float32.
// ModelFile's copy of the written file does not add to the peak: the packed tensors are freed
// before it, and calibration releases the copy's bytes as it lays them out.
#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "converters/checkpoints/elements.h"
#include "converters/convert.h"
#include "converters/passes/prune.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/transformer_xl_source.h"
#include "tests/support/counted_memory.h"

namespace kinglet::convert_memory_test {
namespace {

// The largest tensor has words * width entries: small enough for a quick test, large compared with
// the pieces that files are read in.
constexpr uint64_t kWords = 16384, kWidth = 256;
constexpr uint64_t kLargest = kWords * kWidth * sizeof(float);

std::string WriteSafetensors(const TemporaryFolder& folder, const CheckpointTensors& weights) {
  std::string header, data;
  for (const CheckpointTensor& tensor : weights) {
    const std::vector<float> values = *tensor.values();
    std::string shape;
    for (const uint64_t size : tensor.shape) {
      shape += (shape.empty() ? "" : ",") + std::to_string(size);
    }
    header += header.empty() ? "{" : ",";
    header += "\"" + tensor.name + R"(":{"dtype":"F32","shape":[)" + shape +
              R"(],"data_offsets":[)" + std::to_string(data.size()) + ",";
    data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    header += std::to_string(data.size()) + "]}";
  }
  header += "}";
  std::string length(8, '\0');
  for (size_t i = 0; i < length.size(); ++i) {
    length[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
  }
  return folder.Write("model.safetensors", length + header + data);
}

// A folder like those of Hugging Face's TransfoXL. Tied tables are stored twice, as safetensors
// does it; otherwise the output has another table.
std::string WriteCheckpoint(const TemporaryFolder& folder, bool tied) {
  folder.Write("config.json",
               R"({"vocab_size": 16384, "d_model": 256, "d_embed": 256, "n_head": 2, "d_head": 3,)"
               R"( "n_layer": 1, "div_val": 1, "mem_len": 5, "clamp_len": 4,)"
               R"( "cutoffs": [6, 11], "same_length": true, "tie_word_embeddings": false})");
  RecurrentSource source = TransformerXlSource("transformer.", kWords, kWidth);
  if (!tied) source.Values("crit.out_layers.0.weight")[0] += 1;
  return WriteSafetensors(folder, source.Weights());
}

struct Case {
  bool tied;
  std::optional<int> bits;
  std::optional<double> prune;
  bool calibrate = false;
};

class ConvertMemory : public testing::TestWithParam<Case> {};

TEST_P(ConvertMemory, IsALittleMoreThanTheLargestTensorAndTheOutput) {
  const TemporaryFolder folder;
  ConvertOptions options;
  options.checkpoint = WriteCheckpoint(folder, GetParam().tied);
  options.output = folder.Path("model.kgl");
  options.bits = GetParam().bits;
  options.prune = GetParam().prune;
  if (GetParam().calibrate) {
    std::string words;
    for (uint64_t i = 0; i + 1 < kWords; ++i) words += "w" + std::to_string(i) + "\n";
    options.vocabulary = folder.Write("words", words + "<eos>\n");
    options.calibration_text = folder.Write("text", "w1 w16000 w2 w3 w40\n");
  }
  const CountedMemory memory;
  const auto summary = Convert(options);
  const uint64_t peak = memory.Peak();
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  const uint64_t tables = (GetParam().tied ? 1 : 2) * kLargest / sizeof(float);
  EXPECT_GT(summary->parameters, tables);
  EXPECT_LE(peak, kLargest + kLargest / 5 + summary->file_bytes);
  // Shows that the measurement works.
  EXPECT_GT(peak, kLargest);
}

INSTANTIATE_TEST_SUITE_P(All, ConvertMemory,
                         testing::Values(Case{true, {}, {}}, Case{false, {}, {}}, Case{true, 9, {}},
                                         Case{false, 9, {}}, Case{false, 16, {}},
                                         Case{false, {}, 0.5}, Case{false, 2, 0.5},
                                         Case{true, 9, {}, true}, Case{false, 9, 0.5, true},
                                         Case{false, 16, {}, true}));

// Peak memory with a recipe that computes nothing from its tensors.
TEST(RecipeMemory, TensorsAreReadOneByOne) {
  const TemporaryFolder folder;
  const auto tensor = [](const char* name, uint64_t rows) {
    return CheckpointTensor{name, {rows, kWidth}, [rows]() -> Result<std::vector<float>> {
                              return std::vector<float>(rows * kWidth, 0.5F);
                            }};
  };
  ConvertOptions options;
  options.checkpoint = WriteSafetensors(folder, {tensor("in", kWords), tensor("ih", 4 * kWidth),
                                                 tensor("hh", 4 * kWidth), tensor("out", kWords)});
  options.recipe = folder.Write("recipe.json", R"({"embedding": {"scale": 1, "table": "in"},
      "recurrent": {"cell": "lstm", "gates": "ifgo", "forget_bias": 0,
      "layers": [{"input_weight": "ih", "recurrent_weight": "hh"}]},
      "softmax": {"table": "out"}})");
  options.output = folder.Path("model.kgl");
  options.bits = 9;
  const CountedMemory memory;
  const auto summary = Convert(options);
  const uint64_t peak = memory.Peak();
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_LE(peak, kLargest + kLargest / 5 + summary->file_bytes);
  EXPECT_LT(summary->file_bytes + kLargest / 5, kLargest);  // two tables would be more
}

// A transposed matrix is put together from the pieces of the file.
TEST(ElementsMemory, AStridedTensorIsHeldOnce) {
  const StoredElements elements = {"file", "place", ElementType::kF32, kWords * kWidth,
                                   [](uint64_t /*offset*/, uint64_t bytes, const ByteSink& sink) {
                                     const std::vector<std::byte> zeros(kPieceBytes);
                                     for (uint64_t done = 0; done < bytes; done += zeros.size())
                                       sink(zeros);
                                     return Status();
                                   }};
  const CountedMemory memory;
  const auto values = ReadFloats(elements, WholeView({kWords, kWidth}, true));
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(values->size(), kWords * kWidth);
  EXPECT_LE(memory.Peak(), kLargest + kLargest / 5);
}

TEST(PruneMemory, TakesNoneInProportionToTheTensor) {
  EncodedTensor tensor = {"t", {kWords * kWidth}, DenseF32{}, false};
  std::get<DenseF32>(tensor.values).values.resize(kWords * kWidth, 0.5F);
  const CountedMemory memory;
  PruneTensor(0.5, tensor);
  EXPECT_LE(memory.Peak(), uint64_t{1} << 20);
  EXPECT_EQ(CountNonzeros(tensor), kWords * kWidth / 2);
}

}  // namespace
}  // namespace kinglet::convert_memory_test
