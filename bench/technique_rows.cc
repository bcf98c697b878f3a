#include "bench/technique_rows.h"

#include <array>
#include <cstdio>

namespace kinglet {
namespace {

using Base = TechniqueBase;
using Tables = TechniqueTables;

constexpr int kFeedbackActivationBits = 9;

constexpr auto kRows = std::to_array<TechniqueRow>({
    // method, base, tables, checkpoint, recipe, bits, prune, feedback
    {"adaptive, tied, float32", Base::kDemo, Tables::kBoth, "", ""},
    {"tables as float16", Base::kDemo, Tables::kBoth, "", "wikitext2-float16.json"},
    {"10-bit scalar quantisation", Base::kDemo, Tables::kBoth, "", "", 10},
    {"9-bit scalar quantisation", Base::kDemo, Tables::kBoth, "", "", 9},
    {"8-bit scalar quantisation", Base::kDemo, Tables::kBoth, "", "", 8},
    {"5-bit, by feedback", Base::kDemo, Tables::kBoth, "", "", 5, 0, true},
    {"4-bit, by feedback", Base::kDemo, Tables::kBoth, "", "", 4, 0, true},
    {"3-bit, by feedback", Base::kDemo, Tables::kBoth, "", "", 3, 0, true},
    {"pruned to 0.5, 9-bit", Base::kDemo, Tables::kBoth, "", "", 9, 0.5},
    {"product quantisation", Base::kDemo, Tables::kBoth, "", "wikitext2-product-quantised.json"},
    {"product quantisation, 9-bit", Base::kDemo, Tables::kBoth, "",
     "wikitext2-product-quantised-9-bit.json"},
    {"slim by clustering", Base::kDemo, Tables::kBoth, "", "wikitext2-slim.json"},

    {"full, float32", Base::kFull, Tables::kBoth, "full", ""},
    {"9-bit scalar quantisation", Base::kFull, Tables::kBoth, "full", "tables-9-bit.json"},
    {"product quantisation", Base::kFull, Tables::kInput, "full", "input-product-quantised.json"},
    {"summed codes", Base::kFull, Tables::kInput, "full", "input-summed-codes.json"},
    {"low rank", Base::kFull, Tables::kInput, "full", "input-low-rank.json"},
    {"slim by clustering", Base::kFull, Tables::kBoth, "full", "slim-clustered.json"},
    {"slim, mapping drawn", Base::kFull, Tables::kBoth, "full", "slim-shuffled.json"},
    {"HashedNets", Base::kFull, Tables::kInput, "full", "input-hashnet.json"},

    {"low rank (projective), tied", Base::kTrained, Tables::kBoth, "low-rank", ""},
    {"adaptive, tied", Base::kTrained, Tables::kBoth, "adaptive", ""},
    {"DeFINE, cached, float32", Base::kTrained, Tables::kInput, "define", ""},
    {"DeFINE, cached, 9-bit", Base::kTrained, Tables::kInput, "define", "input-9-bit.json"},
    {"DeFINE, cached, product quantised", Base::kTrained, Tables::kInput, "define",
     "input-product-quantised.json"},
    {"DeFINE, cached, summed codes", Base::kTrained, Tables::kInput, "define",
     "input-summed-codes.json"},
    {"DPQ-SX", Base::kTrained, Tables::kInput, "dpq-sx", ""},
    {"DPQ-VQ", Base::kTrained, Tables::kInput, "dpq-vq", ""},
    {"KD codes, mean and linear", Base::kTrained, Tables::kInput, "kd", ""},
    {"Shu & Nakayama's codes", Base::kTrained, Tables::kInput, "shu", ""},
    {"slim input", Base::kTrained, Tables::kInput, "slim-input", ""},
    {"slim output", Base::kTrained, Tables::kOutput, "slim-output", ""},
    {"slim output, hashed", Base::kTrained, Tables::kOutput, "slim-hashed", ""},
    {"slim input and output", Base::kTrained, Tables::kBoth, "slim", ""},
    {"HashedNets (sub-vectors of one number)", Base::kTrained, Tables::kInput, "hashnet", ""},
    {"class-factored softmax", Base::kTrained, Tables::kOutput, "class-factored", ""},
    {"DeFINE and DPQ bins, slim output, pruned LSTM, cache of 200", Base::kTrained, Tables::kBoth,
     "everything", ""},

    {"character CNN, cached, float32", Base::kTransformer, Tables::kInput, "fairseq-char", ""},
    {"character CNN, cached, 9-bit", Base::kTransformer, Tables::kInput, "fairseq-char",
     "characters-9-bit.json"},
    {"character CNN, cached, product quantised", Base::kTransformer, Tables::kInput, "fairseq-char",
     "characters-product-quantised.json"},
    {"DeFINE (24 to 64) in Transformer-XL, cached, float32", Base::kTransformer, Tables::kInput,
     "reference-txl-define", "reference-txl-define.json"},
    {"DeFINE (24 to 64) in Transformer-XL, cached, 9-bit", Base::kTransformer, Tables::kInput,
     "reference-txl-define", "reference-txl-define.json", 9},
    {"DPQ-SX in Transformer-XL", Base::kTransformer, Tables::kInput, "reference-txl-dpq",
     "reference-txl-dpq.json"},
    {"DPQ-SX in Transformer-XL, 9-bit", Base::kTransformer, Tables::kInput, "reference-txl-dpq",
     "reference-txl-dpq.json", 9},
});

}  // namespace

std::span<const TechniqueRow> TechniqueRows() { return kRows; }

ConvertOptions OptionsOf(const TechniqueRow& row, const TechniqueFolders& folders,
                         const std::string& output) {
  ConvertOptions options;
  const std::string demo = folders.examples + "/wikitext2";
  if (row.base == Base::kDemo) {
    options.checkpoint = demo;
    options.vocabulary = demo + "/vocab.txt";
    options.cache_capacity = 0;  // its pairs would hide the tables' part of the perplexity
  } else if (row.base == Base::kTransformer) {
    // `convert` finds the configuration and the words in the folder.
    options.checkpoint = folders.checkpoints + "/" + std::string(row.checkpoint);
  } else {
    const std::string stem = folders.models + "/" + std::string(row.checkpoint);
    options.checkpoint = stem + ".pt";
    options.vocabulary = stem + ".vocab.txt";
  }
  options.output = output;
  if (!row.recipe.empty()) {
    options.recipe = folders.examples + "/recipes/" + std::string(row.recipe);
    options.trust_recipe_paths = true;  // some calibrate on the demo model's text
  }
  if (row.bits != 0) {
    options.bits = row.bits;
    if (row.base != Base::kTransformer) options.calibration_text = demo + "/calibration.txt";
  }
  if (row.prune > 0) options.prune = row.prune;
  if (row.feedback) {
    options.activation_bits = kFeedbackActivationBits;
    options.scale_by = ScaleBy::kLeastSquares;
    options.round_by = RoundBy::kFeedback;
    options.calibrate_by = RangeRule::By::kPercentile;
  }
  return options;
}

std::string CommandOf(const TechniqueRow& row) {
  std::string text = "convert ";
  const bool folder = row.base == Base::kTransformer;
  text += row.base == Base::kDemo ? "wikitext2 --cache 0"
                                  : std::string(row.checkpoint) + (folder ? "/" : ".pt");
  if (!row.recipe.empty()) text += " --recipe " + std::string(row.recipe);
  char number[32];
  if (row.prune > 0) {
    std::snprintf(number, sizeof(number), " --prune %g", row.prune);
    text += number;
  }
  if (row.bits != 0) text += " --bits " + std::to_string(row.bits);
  if (row.bits != 0 && !folder) text += " --calibrate calibration.txt";
  if (row.feedback) {
    text += " --activation-bits " + std::to_string(kFeedbackActivationBits) +
            " --scale-by mse --round-by feedback --calibrate-by percentile";
  }
  return text;
}

}  // namespace kinglet
