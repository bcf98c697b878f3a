#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/recurrent_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/tools/run_command.h"

namespace kinglet::inspect_test {
namespace {

TinyOptions Pruned9() {
  TinyOptions options;
  options.bits = 9;
  options.quantised = true;
  options.pruned = true;
  options.cache_capacity = 7;
  return options;
}

TEST(Inspect, AccountsForEveryByte) {
  const CommandFolder folder;
  const ModelDraft draft = TinyMicronet(Pruned9());
  folder.WriteModel("m.kgl", draft);
  const auto report = folder.Run("inspect m.kgl --json").Json().at(0);
  const uint64_t size = std::filesystem::file_size(folder.Path("m.kgl"));
  EXPECT_EQ(report["file_size"], size);
  EXPECT_EQ(report["ledger_total"], size);
  uint64_t parts = 0;
  for (const auto& [part, bytes] : report["bytes"].items()) parts += bytes.get<uint64_t>();
  EXPECT_EQ(parts, size);

  uint64_t parameters = 0, mask_bytes = 0;
  ASSERT_EQ(report["tensors"].size(), draft.tensors.size());
  for (size_t i = 0; i < draft.tensors.size(); ++i) {
    const EncodedTensor& tensor = draft.tensors[i];
    const auto& entry = report["tensors"][i];
    SCOPED_TRACE(tensor.name);
    EXPECT_EQ(entry["name"], tensor.name);
    EXPECT_EQ(entry["shape"].get<Shape>(), tensor.shape);
    const uint64_t entries = Count(tensor.shape);
    parameters += entries;
    const uint64_t stored = tensor.pruned ? CountNonzeros(tensor) : entries;
    EXPECT_EQ(entry["stored"], stored);
    EXPECT_EQ(entry["mask"], tensor.pruned ? (entries + 7) / 8 : 0);
    mask_bytes += entry["mask"].get<uint64_t>();
    const std::string mask = tensor.pruned ? "+mask" : "";
    if (std::holds_alternative<Quantised>(tensor.values)) {
      EXPECT_EQ(entry["encoding"],
                (tensor.shape.size() == 2 ? "packed9/row" : "packed9/divisor") + mask);
      EXPECT_EQ(entry["codes"], (stored * 9 + 7) / 8);
      EXPECT_EQ(entry["values"], 0);
      EXPECT_GT(entry["scales"], 0);
    } else {
      EXPECT_EQ(entry["encoding"], "f32" + mask);
      EXPECT_EQ(entry["values"], 4 * stored);
      EXPECT_EQ(entry["codes"], 0);
      EXPECT_EQ(entry["scales"], 0);
    }
  }
  EXPECT_EQ(report["parameters"], parameters);
  EXPECT_EQ(report["bytes"]["mask"], mask_bytes);
  EXPECT_EQ(report["digest"].get<std::string>().size(), 32u);
}

TEST(Inspect, DerivedTensorsAreNoParameters) {
  const CommandFolder folder;
  ModelDraft draft = TinyMicronet(Pruned9());
  folder.WriteModel("m.kgl", draft);
  const auto before = folder.Run("inspect m.kgl --json").Json().at(0);
  draft.tensors[0].derived = true;
  folder.WriteModel("d.kgl", draft);
  const auto after = folder.Run("inspect d.kgl --json").Json().at(0);
  for (const char* key : {"parameters", "stored"}) {
    const uint64_t own =
        key[0] == 'p' ? Count(draft.tensors[0].shape) : CountNonzeros(draft.tensors[0]);
    EXPECT_EQ(before[key].get<uint64_t>() - after[key].get<uint64_t>(), own) << key;
  }
  EXPECT_EQ(after["file_size"], after["ledger_total"]);
}

TEST(Inspect, DescribesTheBlocks) {
  const CommandFolder folder;
  folder.WriteModel("m.kgl", TinyMicronet(Pruned9()));
  const auto blocks = folder.Run("inspect m.kgl --json").Json().at(0)["blocks"];
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_EQ(blocks[0]["block"], "adaptive_embedding");
  EXPECT_EQ(blocks[0]["bins"].size(), 3u);
  EXPECT_EQ(blocks[0]["bins"][1]["projection"], "embed.projections.0.weight");
  EXPECT_FALSE(blocks[0]["bins"][0].contains("projection"));
  EXPECT_FALSE(blocks[0]["bins"][0].contains("tokens"));  // not known
  EXPECT_EQ(blocks[1]["block"], "transformer_decoder");
  EXPECT_EQ(blocks[1]["window"], 6);
  EXPECT_EQ(blocks[1]["start"], "zeros");
  EXPECT_EQ(blocks[1]["layers"].size(), 2u);
  EXPECT_EQ(blocks[1]["layers"][1]["outer_weight"], "layers.1.fc.3.weight");
  EXPECT_EQ(blocks[1]["positions"]["kind"], "slots");
  EXPECT_EQ(blocks[1]["norm_order"], "pre");
  EXPECT_EQ(blocks[1]["layers"][1]["quantisers"]["outer"]["max_abs"], 2.5);
  EXPECT_EQ(blocks[2]["block"], "adaptive_softmax");
  EXPECT_EQ(blocks[2]["tails"].size(), 2u);
  EXPECT_EQ(blocks[3]["block"], "neural_cache");
  EXPECT_EQ(blocks[3]["capacity"], 7);
  EXPECT_EQ(blocks[3]["lambda"], 0.125);
}

TEST(Inspect, DescribesTransformers) {
  const CommandFolder folder;
  folder.WriteModel("m.kgl", TinyTransformer({.clamp = 3, .biases = true, .final_norm = true}));
  const auto report = folder.Run("inspect m.kgl --json").Json().at(0);
  // Frequencies are no parameters.
  uint64_t entries = 0;
  for (const auto& tensor : report["tensors"]) entries += Count(tensor["shape"].get<Shape>());
  EXPECT_EQ(report["parameters"], entries - 4);
  const auto block = report["blocks"][1];
  EXPECT_EQ(block["block"], "transformer_decoder");
  EXPECT_EQ(block["norm_order"], "post");
  EXPECT_EQ(block["epsilon"], 1e-5);
  EXPECT_EQ(block["positions"]["kind"], "relative_sinusoids");
  EXPECT_EQ(block["positions"]["frequencies"], "pos_emb.inv_freq");
  EXPECT_EQ(block["positions"]["clamp"], 3);
  EXPECT_EQ(block["final_norm_bias"], "norm.bias");
  EXPECT_EQ(block["layers"][1]["content_bias"], "layers.1.r_w_bias");
  EXPECT_EQ(block["layers"][1]["out_bias"], "layers.1.out.bias");
  EXPECT_FALSE(block["layers"][1].contains("start"));
  const std::string text = folder.Run("inspect m.kgl").out;
  EXPECT_NE(text.find("window 5, relative sinusoids up to 3, post-norm, a final norm"),
            std::string::npos)
      << text;

  folder.WriteModel("a.kgl", TinyTransformer({.positions = TinyPositions::kAbsolute}));
  const auto absolute = folder.Run("inspect a.kgl --json").Json().at(0)["blocks"][1];
  EXPECT_EQ(absolute["positions"]["kind"], "absolute_sinusoids");
  EXPECT_EQ(absolute["positions"]["first"], 2);
  folder.WriteModel("t.kgl", TinyTransformer({.positions = TinyPositions::kTable}));
  const auto table = folder.Run("inspect t.kgl --json").Json().at(0)["blocks"][1];
  EXPECT_EQ(table["positions"]["table"], "pe");
}

TEST(Inspect, DescribesRecurrentBlocks) {
  const CommandFolder folder;
  folder.WriteModel("m.kgl", TinyRecurrent({.cells = {RecurrentCell::kQrnn, RecurrentCell::kGru},
                                            .quantised = true,
                                            .bits = 9,
                                            .cache_capacity = 3}));
  const auto blocks = folder.Run("inspect m.kgl --json").Json().at(0)["blocks"];
  EXPECT_EQ(blocks[1]["block"], "recurrent_decoder");
  EXPECT_EQ(blocks[1]["inputs"], 6);
  EXPECT_EQ(blocks[1]["input"]["max_abs"], 1.5);
  ASSERT_EQ(blocks[1]["layers"].size(), 2u);
  EXPECT_EQ(blocks[1]["layers"][0]["cell"], "qrnn");
  EXPECT_FALSE(blocks[1]["layers"][0].contains("recurrent_bias"));
  EXPECT_EQ(blocks[1]["layers"][1]["cell"], "gru");
  EXPECT_EQ(blocks[1]["layers"][1]["units"], 9);
  EXPECT_EQ(blocks[1]["layers"][1]["recurrent_weight"], "rnns.1.weight_hh");
  EXPECT_EQ(blocks[3]["start"], "past_capacity");
  const std::string text = folder.Run("inspect m.kgl").out;
  EXPECT_NE(text.find("layers QRNN 8 + GRU 9, activations quantised"), std::string::npos) << text;
  EXPECT_NE(text.find("past its capacity"), std::string::npos);
}

TEST(Inspect, KeysComeInTheContractsOrder) {
  const CommandFolder folder;
  folder.WriteModel("m.kgl", TinyMicronet());
  const std::string line = folder.Run("inspect m.kgl --json").out;
  size_t last = 0;
  for (const char* key :
       {"{\"file_size\":", ",\"ledger_total\":", ",\"parameters\":", ",\"digest\":",
        ",\"tensors\":[{\"name\":", ",\"shape\":[",
        ",\"encoding\":", ",\"codes\":", ",\"mask\":", ",\"scales\":", "],\"blocks\":["}) {
    const size_t at = line.find(key);
    ASSERT_NE(at, std::string::npos) << key;
    EXPECT_GE(at, last) << key;
    last = at;
  }
}

TEST(Inspect, PeopleGetATable) {
  const CommandFolder folder;
  ModelDraft draft = TinyMicronet(Pruned9());
  draft.description.provenance.options = "bits 9";
  folder.WriteModel("m.kgl", draft);
  const Outcome outcome = folder.Run("inspect m.kgl");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_NE(outcome.out.find("9-bit, a scale per row, pruned "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("neural cache"), std::string::npos);
  EXPECT_NE(outcome.out.find("layers.0.qkv.weight"), std::string::npos);
  folder.WriteModel("equal.kgl", TinyMicronet());
  const Outcome folded = folder.Run("inspect equal.kgl"),
                all = folder.Run("inspect equal.kgl --all");
  EXPECT_NE(folded.out.find("layers.*.qkv.weight"), std::string::npos) << folded.out;
  EXPECT_NE(all.out.find("layers.1.qkv.weight"), std::string::npos) << all.out;
}

}  // namespace
}  // namespace kinglet::inspect_test
