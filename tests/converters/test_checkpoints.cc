#include "tests/converters/test_checkpoints.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "tests/converters/synthetic.h"

namespace kinglet {

namespace fs = std::filesystem;

std::vector<std::string> CheckpointFolders(const std::string& variants,
                                           const std::vector<std::string>& names) {
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(KINGLET_TEST_DATA "/" + variants)) {
    if (entry.is_directory()) folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  const char* more = std::getenv("KINGLET_CHECKPOINTS");
  if (more == nullptr || *more == '\0') return folders;
  for (const std::string& name : names) {
    const std::string folder = std::string(more) + "/" + name;
    if (fs::exists(folder)) folders.push_back(folder);
  }
  return folders;
}

const KeptConversion& ConvertOnce(const std::string& key, ConvertOptions options) {
  static const TemporaryFolder folder;
  static std::map<std::string, KeptConversion> kept;
  const auto found = kept.find(key);
  if (found != kept.end()) return found->second;
  options.output = folder.Path(std::to_string(kept.size()) + ".kgl");
  const Result<ConvertSummary> summary = Convert(options);
  return kept.emplace(key, KeptConversion{options, summary}).first->second;
}

namespace {

// The folders of tests/data/`variants` whose names begin with `prefix`, and the checkpoints of
// KINGLET_CHECKPOINTS, which the original frameworks wrote.
struct FixtureSet {
  const char* variants;
  const char* prefix;
  const char* family;
  std::vector<const char*> originals = {};
  // Families that round, as they add a forget bias or compute a table, have a larger one.
  double tolerance = 1e-6;
  double near = 0.03;
};

// A folder belongs to the first row that fits.
const std::vector<FixtureSet>& FixtureSets() {
  static const std::vector<FixtureSet> sets = {
      {"bert", "", "bert"},
      // Position tables are float32 in both and may differ by a unit in the last place of exp, sin
      // or cos. Three of fairseq-char's frequencies do, which adds up along the text.
      {"fastai", "", "fastai", {}, 1e-9, 0.02},
      {"flair", "", "flair", {}, 1e-9, 0.01},
      {"fairseq-variants", "none", "fairseq", {"fairseq-char"}, 2e-5},
      {"fairseq-variants", "", "fairseq", {"fairseq-adaptive"}},
      {"gpt2", "", "gpt2"},
      {"kinglet-torch", "", "recipe"},
      {"micronet-variants", "", "neurips-micronet", {}, 1e-9},
      {"opennmt", "", "opennmt", {}, 1e-9},
      {"opennmt-recurrent", "", "opennmt", {"opennmt-rnn"}, 1e-9},
      // The original rounds attention scores to float32.
      {"opennmt", "none", "opennmt", {"opennmt-transformer"}, 2e-5},
      {"pytorch-transformer", "", "pytorch-examples-transformer"},
      {"recurrent-variants", "awd", "awd-lstm", {"awd-lstm"}, 1e-9, 0.01},
      {"recurrent-variants", "define-awd", "define-awd-lstm", {}, 1e-6, 0.01},
      {"recurrent-variants", "examples", "pytorch-examples", {"pytorch-examples"}, 1e-9, 0.01},
      {"recurrent-variants", "zaremba", "zaremba-tf", {"dpq-lm-sx"}, 1e-6, 0.01},
      {"speech-lm-variants", "espnet-rnn", "espnet-rnn-lm", {"espnet-rnn-lm"}},
      {"speech-lm-variants", "espnet-tr", "espnet-transformer-lm", {"espnet-transformer-lm"}},
      {"speech-lm-variants", "icefall-rnn", "icefall-rnn-lm", {"icefall-rnn-lm"}},
      {"speech-lm-variants", "icefall-tr", "icefall-transformer-lm", {"icefall-transformer-lm"}},
      {"speech-lm-variants", "speechbrain-rnn", "speechbrain-rnn-lm", {"speechbrain-rnn-lm"}},
      {"speech-lm-variants",
       "speechbrain-tr",
       "speechbrain-transformer-lm",
       {"speechbrain-transformer-lm"}},
      {"transformer-xl-variants", "hf-", "transfo-xl-hf", {}, 1e-6, 0.02},
      {"transformer-xl-variants", "kimi-", "transformer-xl", {"transformer-xl"}, 1e-6, 0.02},
  };
  return sets;
}

std::vector<TestCheckpoint> MakeTestCheckpoints() {
  std::vector<TestCheckpoint> fixtures;
  std::set<std::string> seen;
  for (const FixtureSet& set : FixtureSets()) {
    for (const std::string& folder :
         CheckpointFolders(set.variants, {set.originals.begin(), set.originals.end()})) {
      const std::string name = fs::path(folder).filename();
      const bool original = std::count(set.originals.begin(), set.originals.end(), name) > 0;
      if ((!original && !name.starts_with(set.prefix)) || !seen.insert(folder).second) continue;
      fixtures.push_back({folder, set.family, set.tolerance, set.near});
    }
  }
  return fixtures;
}

// The first of these files that the folder has, or nothing.
std::string FirstOf(const std::string& folder, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (fs::exists(folder + "/" + name)) return folder + "/" + name;
  }
  return "";
}

}  // namespace

const std::vector<TestCheckpoint>& TestCheckpoints() {
  static const std::vector<TestCheckpoint> fixtures = MakeTestCheckpoints();
  return fixtures;
}

std::vector<std::string> FixtureFolders(const std::string& family) {
  std::vector<std::string> folders;
  for (const TestCheckpoint& fixture : TestCheckpoints()) {
    if (fixture.family == family) folders.push_back(fixture.folder);
  }
  return folders;
}

std::string FolderTestName(const testing::TestParamInfo<std::string>& instance) {
  const fs::path path = instance.param;
  std::string name = path.parent_path().filename().string() + "_" + path.filename().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

ConvertOptions FixtureOptions(const std::string& folder) {
  ConvertOptions options;
  options.checkpoint = FirstOf(
      folder, {"save/CKPT+2024", "model_step_7.pt", "model_step_900.pt", "model_step_2800.pt"});
  if (options.checkpoint.empty()) options.checkpoint = folder;
  options.golden = FirstOf(folder, {"golden_f64.tsv", "golden.tsv"});
  if (!options.golden.empty()) {
    options.ids = FirstOf(folder, {"pairs.txt", "ids.txt", "tokens.txt"});
    options.segments = FirstOf(folder, {"segments.txt"});
  }
  options.tolerance = 1e-6;
  // The tokens of speech toolkits and of OpenNMT are found.
  if (!fs::exists(folder + "/sentences.txt") && options.checkpoint == folder) {
    options.vocabulary =
        FirstOf(folder, {"dict.txt", "vocab.txt", "vocab.pkl", "vocab.bin", "vocab.npy"});
  }
  options.config = FirstOf(folder, {"eval.yaml"});
  if (std::ifstream cache(folder + "/cache.txt"); cache) {
    uint32_t capacity = 0;
    double theta = 0, lambda = 0;
    cache >> capacity >> theta >> lambda;
    options.cache_capacity = capacity;
    options.cache_theta = theta;
    options.cache_lambda = lambda;
  }
  return options;
}

const KeptConversion& ConvertedFixture(const std::string& folder) {
  const auto fixture =
      std::find_if(TestCheckpoints().begin(), TestCheckpoints().end(),
                   [&](const TestCheckpoint& each) { return each.folder == folder; });
  EXPECT_NE(fixture, TestCheckpoints().end()) << folder;
  ConvertOptions options = FixtureOptions(folder);
  options.tolerance = fixture->tolerance;
  const KeptConversion& kept = ConvertOnce(folder, options);
  EXPECT_TRUE(kept.summary.ok()) << folder << ": " << kept.summary.status().message();
  return kept;
}

}  // namespace kinglet
