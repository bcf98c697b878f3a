// Files with DeFINE units: they read back as written, and every broken rule is refused.
#include "format/validate_define.h"

#include <gtest/gtest.h>

#include "format/model_file.h"
#include "tests/format/hostile_edits.h"
#include "tests/support/define_builder.h"
#include "tests/support/define_units.h"

namespace kinglet::validate_define_test {
namespace {

// A shuffled unit with both norms, between a Map of two bins and a recurrent decoder.
ModelDraft GoodDraft() { return TinyDefine({.unit = DefineUnits()[2].unit, .cache_rows = 7}); }

editable::DefineUnitT& Unit(EditableFile& file) { return *file.Embedding().units[0]; }

TEST(DefineUnitInFile, ComesBackAsItWasWritten) {
  for (const NamedUnit& named : DefineUnits()) {
    const ModelDraft draft = TinyDefine({.unit = named.unit, .cache_rows = 9});
    const auto bytes = SerialiseModel(draft);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    const auto file = ModelFile::FromBytes(*bytes);
    ASSERT_TRUE(file.ok()) << named.name << ": " << file.status().message();
    const auto& written = *FindBlock<AdaptiveEmbedding>(draft.description);
    const auto& read = *FindBlock<AdaptiveEmbedding>((*file)->description());
    ASSERT_EQ(read.units.size(), 1U);
    EXPECT_EQ(read.units[0].unit, written.units[0].unit) << named.name;
    EXPECT_EQ(read.units[0].cache_rows, 9U);
    EXPECT_EQ(read.bins[0].scale, 1);
    EXPECT_EQ(read.bins[1].scale, 2);
    for (size_t i = 0; i < written.units[0].tensors.size(); ++i) {
      EXPECT_EQ(read.units[0].tensors[i].weight, written.units[0].tensors[i].weight);
      EXPECT_EQ(read.units[0].tensors[i].bias, written.units[0].tensors[i].bias);
      EXPECT_EQ(read.units[0].tensors[i].norm_gain, written.units[0].tensors[i].norm_gain);
      EXPECT_EQ(read.units[0].tensors[i].norm_offset, written.units[0].tensors[i].norm_offset);
    }
  }
}

TEST(DefineUnitInFile, IsRefusedWhereItDoesNotFit) {
  const HostileEdit edits[] = {
      {"block embedding, unit 0, map width", [](EditableFile& f) { Unit(f).map_width = 0; }},
      {"block embedding, unit 0, map width",
       [](EditableFile& f) { Unit(f).map_width = UINT32_MAX; }},
      {"block embedding, bin 0, table",
       [](EditableFile& f) {
         // A unit that is consistent, but for a wider Map.
         Unit(f).map_width = 18;
         Unit(f).layers.erase(Unit(f).layers.begin());
       }},
      {"block embedding, unit 0, entry layers", [](EditableFile& f) { Unit(f).entry_layers = 4; }},
      {"block embedding, unit 0, cache rows", [](EditableFile& f) { Unit(f).cache_rows = 0; }},
      {"block embedding, unit 0, cache rows",
       [](EditableFile& f) { Unit(f).cache_rows = UINT32_MAX; }},
      {"block embedding, unit 0, output", [](EditableFile& f) { Unit(f).layers.pop_back(); }},
      {"block embedding, unit 0, layers",
       [](EditableFile& f) {
         auto& layers = Unit(f).layers;
         while (layers.size() <= kMaxLayers) {
           layers.push_back(std::make_unique<editable::DefineLayerT>(*layers[0]));
         }
       }},
      {"block embedding, unit 0, layer 1, groups",
       [](EditableFile& f) { Unit(f).layers[1]->groups = 0; }},
      {"block embedding, unit 0, layer 1, groups",
       [](EditableFile& f) { Unit(f).layers[1]->groups = 5; }},
      {"block embedding, unit 0, layer 0, out",
       [](EditableFile& f) { Unit(f).layers[0]->out = UINT32_MAX; }},
      {"block embedding, unit 0, layer 0, out",
       [](EditableFile& f) { Unit(f).layers[0]->out = 0; }},
      {"block embedding, unit 0, layer 0, skip",
       [](EditableFile& f) { Unit(f).layers[0]->skip = editable::DefineSkip::Mix; }},
      {"block embedding, unit 0, layer 1, out",
       [](EditableFile& f) {
         Unit(f).layers[1]->residual = editable::DefineResidual::AfterActivation;
       }},
      {"block embedding, unit 0, layer 0, norm epsilon",
       [](EditableFile& f) { Unit(f).layers[0]->norm_epsilon = 0; }},
      {"block embedding, unit 0, layer 0, weight",
       [](EditableFile& f) { Unit(f).layers[0]->weight = 10'000; }},
      {"block embedding, unit 0, layer 0, weight",
       [](EditableFile& f) { Unit(f).layers[0]->weights = editable::DefineSharing::Shared; }},
      {"block embedding, unit 0, layer 0, bias",
       [](EditableFile& f) { Unit(f).layers[0]->bias = UINT32_MAX; }},
      {"block embedding, unit 0, layer 0, bias",
       [](EditableFile& f) { Unit(f).layers[0]->bias_sharing = editable::DefineSharing::Shared; }},
      {"block embedding, unit 0, layer 0, norm gain",
       [](EditableFile& f) { Unit(f).layers[0]->norm_gain = Unit(f).layers[1]->norm_gain; }},
      {"block embedding, unit 0, layer 0, norm offset",
       [](EditableFile& f) { Unit(f).layers[0]->norm_offset = Unit(f).layers[0]->weight; }},
      {"block embedding, unit 0, layer 2, norm gain",
       [](EditableFile& f) { Unit(f).layers[2]->norm_gain = Unit(f).layers[1]->norm_gain; }},
      {"block embedding, bin 1, scale", [](EditableFile& f) { f.Embedding().bins[1]->scale = 0; }},
  };
  ExpectRefused(edits, EditableFile::FromDraft(GoodDraft()));
}

ModelDraft SpellingDraft() { return TinyDefine({.cache_rows = 7, .spells = true}); }

TEST(SpellingInFile, ComesBackAsItWasWritten) {
  const ModelDraft draft = SpellingDraft();
  const auto bytes = SerialiseModel(draft);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto file = ModelFile::FromBytes(*bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto& bins = FindBlock<AdaptiveEmbedding>((*file)->description())->bins;
  EXPECT_FALSE(bins[0].spelling.has_value());
  ASSERT_TRUE(bins[1].spelling.has_value());
  const auto& written = *FindBlock<AdaptiveEmbedding>(draft.description)->bins[1].spelling;
  EXPECT_EQ(bins[1].spelling->longest, 6U);
  ASSERT_EQ(bins[1].spelling->filters.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    const ByteFilter &read = bins[1].spelling->filters[i], &was = written.filters[i];
    EXPECT_EQ(read.width, was.width);
    EXPECT_EQ(read.weight, was.weight);
    EXPECT_EQ(read.bias, was.bias);
  }
}

TEST(SpellingInFile, IsRefusedWhereItDoesNotFit) {
  const auto bin = [](EditableFile& f) -> editable::EmbeddingBinT& {
    return *f.Embedding().bins[1];
  };
  const auto filter = [bin](EditableFile& f, size_t i) -> editable::ByteFilterT& {
    return *bin(f).spelling->filters[i];
  };
  const HostileEdit edits[] = {
      {"block embedding, bin 1, spelling", [](EditableFile& f) { f.Embedding().units.clear(); }},
      {"block embedding, bin 1, spelling",
       [bin](EditableFile& f) { bin(f).projection = bin(f).rows; }},
      {"block embedding, bin 0, spelling",
       [bin](EditableFile& f) { std::swap(f.Embedding().bins[0]->spelling, bin(f).spelling); }},
      {"block embedding, bin 1, longest", [bin](EditableFile& f) { bin(f).spelling->longest = 0; }},
      {"block embedding, bin 1, longest",
       [bin](EditableFile& f) { bin(f).spelling->longest = UINT32_MAX; }},
      {"block embedding, bin 1, filters",
       [bin](EditableFile& f) { bin(f).spelling->filters.clear(); }},
      {"block embedding, bin 1, filter 1, width",
       [bin](EditableFile& f) { bin(f).spelling->longest = 2; }},
      {"block embedding, bin 1, filter 0, width",
       [filter](EditableFile& f) { filter(f, 0).width = 0; }},
      {"block embedding, bin 1, filter 1, weight",
       [filter](EditableFile& f) { filter(f, 1).width = 2; }},
      {"block embedding, bin 1, filter 1, weight",
       [filter](EditableFile& f) { filter(f, 1).weight = UINT32_MAX; }},
      {"block embedding, bin 1, filter 0, weight",
       [filter](EditableFile& f) { filter(f, 0).weight = filter(f, 0).bias; }},
      {"block embedding, bin 1, filter 0, bias",
       [filter](EditableFile& f) { filter(f, 0).bias = filter(f, 1).bias; }},
      {"block embedding, bin 1, channels of all filters",
       [bin](EditableFile& f) { bin(f).spelling->filters.pop_back(); }},
      {"block embedding, bin 1, bytes",
       [bin, filter](EditableFile& f) { bin(f).rows = filter(f, 0).weight; }},
      {"block embedding, bin 1, first word", [bin](EditableFile& f) { bin(f).first = 11; }},
      {"block embedding, bin 1, scale", [bin](EditableFile& f) { bin(f).scale = 0; }},
  };
  ExpectRefused(edits, EditableFile::FromDraft(SpellingDraft()));
}

TEST(DefineUnitInFile, EnumeratorsAreInRange) {
  const HostileEdit edits[] = {
      {"unit 0, layer 1, weights",
       [](EditableFile& f) { Unit(f).layers[1]->weights = editable::DefineSharing(2); }},
      {"unit 0, layer 1, bias sharing",
       [](EditableFile& f) { Unit(f).layers[1]->bias_sharing = editable::DefineSharing(2); }},
      {"unit 0, layer 1, shuffle",
       [](EditableFile& f) { Unit(f).layers[1]->shuffle = editable::DefineShuffle(3); }},
      {"unit 0, layer 1, norm",
       [](EditableFile& f) { Unit(f).layers[1]->norm = editable::DefineNorm(3); }},
      {"unit 0, layer 1, activation",
       [](EditableFile& f) { Unit(f).layers[1]->activation = editable::DefineActivation(6); }},
      {"unit 0, layer 1, skip",
       [](EditableFile& f) { Unit(f).layers[1]->skip = editable::DefineSkip(3); }},
      {"unit 0, layer 1, order",
       [](EditableFile& f) { Unit(f).layers[1]->order = editable::DefineOrder(2); }},
      {"unit 0, layer 1, residual",
       [](EditableFile& f) { Unit(f).layers[1]->residual = editable::DefineResidual(4); }},
  };
  ExpectRefused(edits, EditableFile::FromDraft(GoodDraft()));
}

// Rules that a draft can break and no file can.
TEST(DefineUnitInDraft, IsRefusedWithoutItsTensors) {
  ModelDraft draft = GoodDraft();
  auto& embedding = std::get<AdaptiveEmbedding>(draft.description.blocks[0]);
  embedding.units[0].tensors.pop_back();
  const auto bytes = SerialiseModel(draft);
  ASSERT_FALSE(bytes.ok());
  EXPECT_NE(bytes.status().message().find("unit 0, layers with tensors: expected 3, found 2"),
            std::string::npos)
      << bytes.status().message();
}

}  // namespace
}  // namespace kinglet::validate_define_test
