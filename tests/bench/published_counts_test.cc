// Synthesises each preset, counts it with the command, and compares with the published numbers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <variant>

#include "runtime/accounting/meter.h"
#include "tests/synthesis/presets.h"
#include "tests/synthesis/published_totals.h"
#include "tests/tools/run_command.h"

namespace kinglet::published_counts_test {
namespace {

using Json = nlohmann::ordered_json;

// The largest two need a gigabyte and seconds; set KINGLET_BIG_MODELS to have them.
bool Skipped(const std::string& preset) {
  return (preset == "teacher" || preset == "74M") && std::getenv("KINGLET_BIG_MODELS") == nullptr;
}

class PublishedCounts : public testing::Test {
 protected:
  void Synthesised(const std::string& preset) const {
    const Outcome outcome =
        folder_.RunShell(std::string(KINGLET_SYNTHESISE) + " --preset " + preset + " -o m.kgl");
    ASSERT_EQ(outcome.exit_status, 0) << outcome.error;
  }
  Outcome Counted(const std::string& file, const std::string& options, const char* bins) const {
    const std::string counts = *bins == 0 ? "" : std::string(" --bin-counts ") + bins;
    const Outcome outcome = folder_.Run("count " + file + counts + " --json " + options);
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    return outcome;
  }
  Json Report(const std::string& file, const std::string& options,
              const char* bins = "198232,35479,11858") const {
    const auto lines = Counted(file, options, bins).Json();
    EXPECT_EQ(lines.size(), 1u);
    return lines.empty() ? Json() : lines.front();
  }
  Json Micronet(const std::string& preset) const {
    Synthesised(preset);
    return Report("m.kgl", "--rules micronet-2019", preset == "74M" ? "" : "198232,35479,11858");
  }
  CommandFolder folder_;
};

TEST_F(PublishedCounts, DenseTotals) {
  for (const DenseTotal& published : kDenseTotals) {
    if (Skipped(published.preset)) continue;
    const double found = Micronet(published.preset)["ops"]["total"];
    EXPECT_NEAR(found / published.operations, 1, 1e-9) << published.preset << " " << found;
    std::printf("%-16s %.3f\n", published.preset, found);
  }
}

// The best network's zeros are the pruner's targets, which training met within 0.01 %. The
// submissions' sparsities are printed to five digits, so each of their 8,296,021 entries may
// contribute half a unit of the fifth digit; they also count the cache's two parameters.
TEST_F(PublishedCounts, PrintedByTheNotebooks) {
  for (const PrintedCount& printed : kPrintedCounts) {
    const bool best = printed.preset == std::string("best");
    const Json found = Micronet(printed.preset);
    const double entries = best ? 1e-4 * printed.nonzero : 5e-6 * printed.total + 2;
    const double words = entries * printed.bits / 32;
    const auto near = [&](const Json& value, double expected, double tolerance) {
      EXPECT_NEAR(value.get<double>(), expected, tolerance) << printed.preset;
    };
    near(found["params"]["nonzero"], printed.nonzero, entries);
    near(found["params"]["total"], printed.total, best ? 0 : 2);
    near(found["params"]["size"], printed.size, words);
    near(found["params"]["mask"], 259250.65625, 0);
    near(found["params"]["quantisation"], printed.quantisation, 0);
    near(found["params"]["total_size"], printed.total_size, words);
    near(found["ops"]["muls"], printed.multiplications, entries);
    near(found["ops"]["adds"], printed.additions, entries);
    near(found["ops"]["others"], printed.others, 0);
    near(found["ops"]["total"], printed.operations, entries + words);
    near(found["score"], printed.score, words / 159e6 + (entries + words) / 318e6);
    if (best) {
      near(found["params"]["total_size"], printed.total_size, 1e-4 * printed.total_size);
      near(found["ops"]["total"], printed.operations, 1e-4 * printed.operations);
      near(found["score"], printed.score, 1e-4 * printed.score);
    }
    std::printf("%-12s size %.3f (%.3f) operations %.3f (%.3f) score %.9f (%.9f)\n", printed.preset,
                found["params"]["total_size"].get<double>(), printed.total_size,
                found["ops"]["total"].get<double>(), printed.operations,
                found["score"].get<double>(), printed.score);
  }
}

TEST_F(PublishedCounts, Table2) {
  for (const TableRow& row : kTable2) {
    const Json found = Micronet(row.preset);
    const double size = found["params"]["total_size"].get<double>() / 1e6;
    const double operations = found["ops"]["total"].get<double>() / 1e6;
    EXPECT_NEAR(size, row.size, 0.05) << row.preset;
    EXPECT_NEAR(operations, row.operations, 0.05) << row.preset;
    std::printf("%-30s size %.3f (%.1f) operations %.3f (%.1f)\n", row.preset, size, row.size,
                operations, row.operations);
  }
}

// --- both counts, side by side ---

OperationTally TallyOf(const Json& json) { return {json["muls"], json["adds"], json["others"]}; }

// Each difference between the two rules equals the formula of its reason (docs/ACCOUNTING.md),
// evaluated at the published shapes.
void ExpectReason(const std::string& name, const std::string& why, const OperationTally& notebook,
                  const OperationTally& difference, double useful) {
  constexpr double kWindow = 97, kHeads = 8, kWidth = 256, kKey = 24, kCache = 3000;
  const auto expect = [&](double multiplications, double additions, double others) {
    EXPECT_NEAR(difference.multiplications, multiplications, 1e-3) << name;
    EXPECT_NEAR(difference.additions, additions, 1e-3) << name;
    EXPECT_NEAR(difference.others, others, 1e-3) << name;
  };
  if (why.starts_with("free in the notebook")) {
    EXPECT_EQ(notebook.Total(), 0) << name;
  } else if (why.starts_with("every head multiplies")) {
    expect(7 * kKey * kWindow, 7 * kKey * kWindow, 0);
  } else if (why.starts_with("every head has one")) {
    expect(0, kHeads * (2 * kWindow - 1), (kHeads - 1) * (3 * kWindow - 1));
  } else if (why.starts_with("mean, variance")) {
    expect(2 * kWidth, 5 * kWidth - 1, kWidth + 3 - 6 * kWidth);
  } else if (name == "cache.weights.softmax") {
    expect(0, 2 * kCache - 1, -kCache);
  } else if (name == "softmax.head.normaliser") {
    expect(0, 3502 - 1, 1 - 3502);
  } else if (name == "softmax.tail.1.normaliser") {
    expect(0, 21500 - 1, 1 - 21500);
  } else if (name == "softmax.tail.2.normaliser") {
    expect(0, 242735 - 1, 1 - 242735);
  } else {
    // The notebook counts exactly the useful part of the executed multiplications.
    EXPECT_EQ(why, "dense planes multiply and add zeros too") << name;
    EXPECT_NEAR(useful, notebook.multiplications, 1e-6) << name;
    EXPECT_GT(difference.multiplications + difference.additions, 0) << name;
    EXPECT_EQ(difference.others, 0) << name;
  }
}

TEST_F(PublishedCounts, EveryDifferenceIsWhatItsReasonSays) {
  for (const std::string preset : {"8.3M-cache3000", "best"}) {
    Synthesised(preset);
    for (const std::string backend : {"ref", "ref64", "cpu"}) {
      std::map<std::string, double> useful;
      const Json executed = Report("m.kgl", "--rules executed --backend " + backend);
      for (const Json& component : executed["components"]) {
        useful[component["name"]] = component["useful_muls"];
      }
      OperationTally positions;
      size_t explained = 0;
      const Outcome compared =
          Counted("m.kgl", "--compare --backend " + backend, "198232,35479,11858");
      for (const Json& line : compared.Json()) {
        const std::string name = line["name"], why = line["why"];
        const OperationTally notebook = TallyOf(line["micronet-2019"]);
        OperationTally difference = TallyOf(line["executed"]);
        difference += notebook * -1;
        EXPECT_EQ(why.empty(), difference.multiplications == 0 && difference.additions == 0 &&
                                   difference.others == 0)
            << name;
        if (why.empty()) continue;
        ++explained;
        ExpectReason(name, why, notebook, difference, useful[name]);
        if (name.ends_with(".query_positions")) positions += difference;
      }
      EXPECT_EQ(positions.multiplications, 130368) << preset << " on " << backend;
      EXPECT_EQ(positions.additions, 130368) << preset << " on " << backend;
      EXPECT_GT(explained, 30u);
    }
  }
}

// --- one weight less ---

SynthesisSpec Small(int bits) {
  SynthesisSpec spec;
  spec.vocabulary_size = 300;
  spec.cutoffs = {60, 150};
  spec.widths = {32, 16, 4};
  spec.layers = 2;
  spec.heads = 4;
  spec.key_size = 6;
  spec.value_size = 5;
  spec.inner = 48;
  spec.window = 9;
  spec.cache = 20;
  spec.bits = bits;
  spec.other_sparsity = 0.3;
  return spec;
}

void ZeroOneEntry(EncodedTensor& tensor) {
  const auto zero = [](auto& entries) {
    for (auto& entry : entries) {
      if (entry == 0) continue;
      entry = 0;
      return;
    }
  };
  if (auto* dense = std::get_if<DenseF32>(&tensor.values)) {
    zero(dense->values);
  } else {
    zero(std::get<Quantised>(tensor.values).codes);
  }
}

// What each count loses when one more entry is zero: the notebook's multiplications and additions,
// and the useful executed multiplications.
struct Predicted {
  const char* tensor;
  double multiplications, additions, useful;
  double charged = 1;  // parameters in the notebook's count
};

TEST_F(PublishedCounts, OneWeightLessTakesWhatIsPredicted) {
  constexpr double kBin1 = 20.0 / 100, kBin2 = 10.0 / 100;
  const Predicted predictions[] = {
      {"layers.1.qkv.weight", 1, 31.0 / 32, 1},
      {"layers.0.out.weight", 1, 19.0 / 20, 1},  // of 4 heads x 5 values
      {"layers.0.fc.0.weight", 1, 31.0 / 32, 1},
      {"layers.1.fc.3.weight", 1, 47.0 / 48, 1},
      {"layers.1.fc.3.bias", 0, 1, 0},
      {"layers.0.qkv.bias", 0, 1, 0},
      // All 4 heads multiply with it; the notebook ignores zeros in this product.
      {"layers.0.pos_emb", 0, 0, 4},
      // Tables: the softmax multiplies with them, a lookup is free.
      {"loss.layers.0.weight", 1, 31.0 / 32, 1},
      {"loss.layers.2.weight", 1, 3.0 / 4, 1},
      {"loss.layers.2.bias", 0, 1, 0},
      {"loss.projections.0.weight", 1, 31.0 / 32, 1},
      {"loss.clusters.weight", 1, 31.0 / 32, 1},
      // Used only for the words of their bins.
      {"embed.projections.0.weight", kBin1, kBin1 * 15 / 16, kBin1},
      {"embed.projections.1.weight", kBin2, kBin2 * 3 / 4, kBin2},
      {"layers.1.ln2.weight", 0, 0, 0, 0}};
  constexpr const char* kBins = "70,20,10";
  for (const int bits : {0, 9}) {
    const ModelDraft draft = *Synthesise(Small(bits));
    folder_.WriteModel("all.kgl", draft);
    const Json micronet = Report("all.kgl", "--rules micronet-2019", kBins);
    const Json executed = Report("all.kgl", "--rules executed", kBins);
    for (const Predicted& predicted : predictions) {
      ModelDraft less = draft;
      size_t found = 0;
      for (EncodedTensor& tensor : less.tensors) {
        if (tensor.name != predicted.tensor) continue;
        ZeroOneEntry(tensor);
        ++found;
      }
      ASSERT_EQ(found, 1u) << predicted.tensor;
      folder_.WriteModel("less.kgl", less);
      const Json micronet_less = Report("less.kgl", "--rules micronet-2019", kBins);
      const Json executed_less = Report("less.kgl", "--rules executed", kBins);
      const auto expect = [&](const Json& before, const Json& after, const char* group,
                              const char* key, double expected) {
        EXPECT_NEAR(before[group][key].get<double>() - after[group][key].get<double>(), expected,
                    1e-8)
            << predicted.tensor << " " << key << ", " << bits << " bits";
      };
      const double width = (bits == 0 ? 32 : bits) / 32.0;
      expect(micronet, micronet_less, "params", "nonzero", predicted.charged);
      expect(micronet, micronet_less, "params", "size", predicted.charged * width);
      expect(micronet, micronet_less, "params", "total_size", predicted.charged * width);
      expect(micronet, micronet_less, "params", "total", 0);
      expect(micronet, micronet_less, "ops", "muls", predicted.multiplications);
      expect(micronet, micronet_less, "ops", "adds", predicted.additions);
      expect(micronet, micronet_less, "ops", "others", 0);
      expect(micronet, micronet_less, "ops", "total",
             predicted.multiplications * width + predicted.additions);
      expect(executed, executed_less, "params", "nonzero", 1);
      expect(executed, executed_less, "params", "total", 0);
      expect(executed, executed_less, "ops", "useful_muls", predicted.useful);
      expect(executed, executed_less, "ops", "total", 0);
    }
  }
}

}  // namespace
}  // namespace kinglet::published_counts_test
