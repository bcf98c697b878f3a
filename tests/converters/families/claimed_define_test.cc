#include "converters/families/claimed_define.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "tests/converters/passes/flat_fixture.h"

namespace kinglet::claimed_define_test {
namespace {

// A state dict that tests/data/define/make_define.py saved, and the unit's outputs for all words.
class Saved {
 public:
  explicit Saved(const std::string& name)
      : expected_(ReadDoubles("define/" + name + "_table.npy")) {
    auto opened = OpenCheckpointFile(std::string(KINGLET_TEST_DATA) + "/define/" + name + ".pt");
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    if (opened.ok()) weights_ = std::move(opened->tensors);
  }

  template <class Claim>
  DefineUnit ExpectTable(Claim claim) const {
    Network builder(weights_);
    const ClaimedDefine claimed = claim(builder);
    EXPECT_EQ(builder.CheckNames("a DeFINE input").message(), "");
    const auto input = ReadDefine(claimed);
    EXPECT_TRUE(input.ok()) << input.status().message();
    if (!input.ok()) return {};
    const auto table = DefineTable(input->map, input->unit, input->weights, 2);
    EXPECT_TRUE(table.ok()) << table.status().message();
    if (!table.ok()) return {};
    // The difference of one rounding to float32.
    EXPECT_LT(LargestDifference(*table, expected_), 6.1e-8);
    return claimed.unit;
  }

 private:
  std::vector<double> expected_;
  CheckpointTensors weights_;
};

TEST(ClaimedDefine, AwdEqualsPyTorch) {
  const DefineUnit unit =
      Saved("awd").ExpectTable([](Network& builder) { return ClaimDefine(builder); });
  ASSERT_EQ(unit.layers.size(), 4U);
  EXPECT_EQ(unit.layers[0].groups, 8U);
  EXPECT_EQ(unit.layers[1].groups, 4U);
  EXPECT_EQ(unit.layers[2].groups, 2U);
}

// A DeFINE unit as a module of a larger network.
TEST(ClaimedDefine, AfterAPrefix) {
  auto opened = OpenCheckpointFile(std::string(KINGLET_TEST_DATA) + "/define/awd.pt");
  ASSERT_TRUE(opened.ok());
  for (CheckpointTensor& tensor : opened->tensors) tensor.name = "encoder.0." + tensor.name;
  Network builder(opened->tensors);
  EXPECT_TRUE(HasDefine(builder, "encoder.0."));
  EXPECT_FALSE(HasDefine(builder, ""));
  const ClaimedDefine claimed = ClaimDefine(builder, "encoder.0.");
  EXPECT_EQ(builder.CheckNames("a DeFINE input").message(), "");
  const CheckpointTensor table = DefineTableTensor("table", claimed);
  const std::vector<double> expected = ReadDoubles("define/awd_table.npy");
  EXPECT_EQ(table.shape, (Shape{claimed.Words(), claimed.width}));
  EXPECT_EQ(table.shape[0] * table.shape[1], expected.size());
  EXPECT_LT(LargestDifference(*table.values(), expected), 6.1e-8);
}

// Tensors with shapes only; nothing reads their values.
class Shapes {
 public:
  void Add(const std::string& name, const Shape& shape) { weights_.push_back({name, shape, {}}); }
  void Replace(const std::string& name, const Shape& shape) {
    for (CheckpointTensor& tensor : weights_) {
      if (tensor.name == name) tensor.shape = shape;
    }
  }

  template <class Claim>
  std::string Faults(Claim claim) const {
    Network builder(weights_);
    claim(builder);
    return builder.CheckNames("a DeFINE input").message();
  }
  const CheckpointTensors& weights() const { return weights_; }

 private:
  CheckpointTensors weights_;
};

// WikiText-103 with the paper's setting R3: n 256, k 1024, N 3, m 256, bands of 20,000, 20,000,
// 160,000 and 67,735 words.
Shapes AwdOfWikiText103() {
  Shapes shapes;
  const uint64_t sizes[] = {20000, 20000, 160000, 67735};
  for (uint64_t band = 0, width = 256; band < 4; ++band, width /= 4) {
    shapes.Add("embeddings.embeds." + std::to_string(band) + ".weight", {sizes[band], width});
    shapes.Add("embeddings.projcs." + std::to_string(band) + ".weight", {256, width});
  }
  const uint64_t in[] = {256, 768, 1024}, out[] = {512, 768, 1024};
  for (uint64_t layer = 0, groups = 8; layer < 3; ++layer, groups /= 2) {
    const std::string name = "define.weights." + std::to_string(layer) + ".";
    shapes.Add(name + "weight", {out[layer] / groups, in[layer] / groups});
    shapes.Add(name + "bias", {out[layer] / groups});
  }
  shapes.Add("define.finalProj.weight", {256, 1024});
  shapes.Add("define.finalProj.bias", {256});
  return shapes;
}

std::string AwdFaults(const Shapes& shapes) {
  return shapes.Faults([](Network& builder) { ClaimDefine(builder); });
}

TEST(ClaimedDefine, CountsOfTheWikiText103SettingFollowFromShapes) {
  const Shapes shapes = AwdOfWikiText103();
  Network builder(shapes.weights());
  const ClaimedDefine claimed = ClaimDefine(builder);
  EXPECT_EQ(builder.CheckNames("a DeFINE input").message(), "");
  EXPECT_TRUE(CheckUnit(claimed.unit).ok());
  EXPECT_EQ(ParameterCount(claimed.unit), 564'224U);
  uint64_t map = 0, words = 0;
  for (const ClaimedDefine::Band& band : claimed.bands) {
    words += band.table->shape[0];
    map += Count(band.table->shape) + Count(band.projection->shape);
  }
  EXPECT_EQ(words, 267'735U);
  // The paper's adaptive input and output of this size; they also have rows for three clusters and
  // no projection in the first band.
  EXPECT_EQ(map - 256 * 256 + 3 * 256, 9'253'212U);
}

TEST(ClaimedDefine, SizesThatCannotBe) {
  const auto faults = [](auto change) {
    Shapes shapes = AwdOfWikiText103();
    change(shapes);
    return AwdFaults(shapes);
  };
  // A size of 0 divides nothing, and no memory is allocated for what a shape claims.
  for (const uint64_t size : {uint64_t{0}, uint64_t{1} << 63, UINT64_MAX}) {
    for (const char* name : {"embeddings.embeds.0.weight", "define.weights.0.weight",
                             "define.weights.2.weight", "define.finalProj.weight"}) {
      for (const Shape& shape :
           {Shape{size, 8}, Shape{8, size}, Shape{size, size}, Shape{size}, Shape{}}) {
        EXPECT_NE(faults([&](Shapes& shapes) { shapes.Replace(name, shape); }), "") << name;
      }
    }
  }
}

}  // namespace
}  // namespace kinglet::claimed_define_test
