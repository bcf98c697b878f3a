// The published best MicroNet configuration. Its weights were not published, so random weights of
// the same shapes and sparsities replace them, and must not take more bytes than the rules of the
// 2019 challenge charge.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "format/model_file.h"
#include "format/writer.h"
#include "tests/synthesis/presets.h"

namespace kinglet::best_configuration_test {
namespace {

using Json = nlohmann::json;

Json Published() {
  std::ifstream file(std::string(KINGLET_TEST_DATA) + "/micronet-best-shapes.json");
  return Json::parse(file);
}

TEST(BestConfiguration, TakesNoMoreBytesThanTheRulesCharge) {
  const Json published = Published();
  const ModelDraft draft = *Synthesise(FindPreset("best")->spec);
  uint64_t nonzeros = 0, total = 0;  // of the tensors that the rules charge: all but norms
  for (const EncodedTensor& tensor : draft.tensors) {
    if (tensor.name.find(".ln") != std::string::npos) continue;
    nonzeros += CountNonzeros(tensor);
    total += Count(tensor.shape);
  }
  // The rules charge 7,029,567.5 bytes: 32-bit words of parameters, masks and quantisers.
  const double charged = 4 * published["published"]["total_size"].get<double>();
  EXPECT_EQ(total, published["published"]["total"].get<uint64_t>());
  // The published network has a few zeros more, from rounding.
  EXPECT_NEAR(static_cast<double>(nonzeros), published["published"]["nonzero"].get<double>(),
              0.001 * static_cast<double>(total));

  const auto bytes = SerialiseModel(draft);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto file = ModelFile::FromBytes(*bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Ledger& ledger = (*file)->ledger();
  EXPECT_EQ(ledger.Total(), bytes->size());

  uint64_t packed = 0;
  std::map<LedgerPart, uint64_t> parts;
  for (const LedgerEntry& entry : ledger.entries) {
    parts[entry.part] += entry.bytes;
    if (entry.part == LedgerPart::kCodes) packed += entry.bytes;
  }
  for (size_t i = 0; i < draft.tensors.size(); ++i) {
    const TensorView& view = (*file)->tensors()[i];
    if (view.quantised() && view.mask) packed += view.mask->bytes.size();
  }
  EXPECT_LE(static_cast<double>(packed), charged);
  // Nothing is omitted: at least nine bits for each non-zero entry, positions not counted.
  const uint64_t positions = 8 * 24 * 97;
  EXPECT_GE(packed, (nonzeros - positions) * 9 / 8);
  uint64_t sum = 0;
  for (const auto& [part, size] : parts) {
    std::cout << LedgerPartName(part) << " " << size << "\n";
    sum += size;
  }
  std::cout << "codes and masks of quantised tensors " << packed << ", charged " << charged << "\n";
  EXPECT_EQ(sum, bytes->size());
}

}  // namespace
}  // namespace kinglet::best_configuration_test
