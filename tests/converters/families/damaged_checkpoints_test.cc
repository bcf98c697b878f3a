// Checkpoints of every family, with one damage at a time: a tensor that is missing, of another
// shape or not finite, an entry of a configuration that is missing or of another kind. Each is
// loaded or refused in one line that names a file.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/checkpoints/checkpoint_path.h"
#include "converters/families/families.h"
#include "converters/families/opennmt_recurrent.h"
#include "tests/converters/files.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/test_checkpoints.h"

namespace kinglet::damaged_checkpoints_test {
namespace {

// With sanitizers, every kind of damage at fewer locations.
#ifdef KINGLET_SANITIZED
constexpr size_t kEvery = 7;
#else
constexpr size_t kEvery = 1;
#endif

struct Opened {
  CheckpointFile checkpoint;
  const Family* family;
};

Result<Opened> Open(const std::string& folder) {
  KINGLET_ASSIGN_OR_RETURN(const std::string path, FindCheckpoint(folder));
  KINGLET_ASSIGN_OR_RETURN(CheckpointFile checkpoint, OpenCheckpointFile(path));
  KINGLET_ASSIGN_OR_RETURN(const Family* family,
                           ChooseFamily("", InputOf(checkpoint, checkpoint.tensors)));
  return Opened{std::move(checkpoint), family};
}

Result<LoadedModel> LoadModel(const Opened& opened, const CheckpointTensors& weights,
                              const std::string& config = "") {
  const CheckpointFile& checkpoint = opened.checkpoint;
  FamilyInput input = InputOf(checkpoint, weights);
  input.config = config;
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, opened.family->load(input));
  KINGLET_RETURN_IF_ERROR(ReadTensors(model));
  return model;
}

Status Load(const Opened& opened, const CheckpointTensors& weights,
            const std::string& config = "") {
  return LoadModel(opened, weights, config).status();
}

// The shape and values of each tensor of the model.
std::vector<std::pair<Shape, std::vector<float>>> ValuesOf(const LoadedModel& model) {
  std::vector<std::pair<Shape, std::vector<float>>> all;
  for (const EncodedTensor& tensor : model.draft.tensors) {
    const auto* values = std::get_if<DenseF32>(&tensor.values);
    all.emplace_back(tensor.shape, values == nullptr ? std::vector<float>() : values->values);
  }
  return all;
}

void ExpectOneLine(const Status& status, const std::string& what) {
  if (status.ok()) return;
  EXPECT_FALSE(status.message().empty()) << what;
  EXPECT_EQ(status.message().find('\n'), std::string::npos) << what << ": " << status.message();
  EXPECT_NE(status.message().find("expected "), std::string::npos)
      << what << ": " << status.message();
  EXPECT_TRUE(status.code() == KINGLET_INVALID_CHECKPOINT || status.code() == KINGLET_UNSUPPORTED ||
              status.code() == KINGLET_NOT_FOUND || status.code() == KINGLET_INVALID_ARGUMENT)
      << what << ": " << status.message();
}

// The tensor with one value that is not finite.
CheckpointTensor NotFinite(CheckpointTensor tensor) {
  const auto damage = [](Result<std::vector<float>> values) {
    if (values.ok() && !values->empty()) {
      values->back() = std::numeric_limits<float>::quiet_NaN();
    }
    return values;
  };
  tensor.place = {};
  tensor.values = [damage, values = tensor.values] { return damage(values()); };
  if (tensor.rows) {
    tensor.rows = [damage, rows = tensor.rows](uint64_t first, uint64_t count) {
      return damage(rows(first, count));
    };
  }
  return tensor;
}

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> Folders() {
  std::vector<std::string> folders;
  for (const TestCheckpoint& fixture : TestCheckpoints()) {
    if (fixture.family != std::string("recipe") && fixture.folder.starts_with(KINGLET_TEST_DATA)) {
      folders.push_back(fixture.folder);
    }
  }
  return folders;
}

// Changes tensor i; false if the tensor cannot be changed so.
using Damage = bool (*)(CheckpointTensors& weights, size_t i);

bool Drop(CheckpointTensors& weights, size_t i) {
  weights.erase(weights.begin() + static_cast<ptrdiff_t>(i));
  return true;
}
bool Rename(CheckpointTensors& weights, size_t i) {
  weights[i].name += "_elsewhere";
  return true;
}
bool Double(CheckpointTensors& weights, size_t i) {
  weights.push_back(CheckpointTensor(weights[i]));
  return true;
}
bool Transpose(CheckpointTensors& weights, size_t i) {
  Shape& shape = weights[i].shape;
  const Shape before = shape;
  std::reverse(shape.begin(), shape.end());
  return shape != before;
}
bool AddRank(CheckpointTensors& weights, size_t i) {
  weights[i].shape.push_back(1);
  return true;
}
template <size_t kDimension, bool kEmpty>
bool Resize(CheckpointTensors& weights, size_t i) {
  Shape& shape = weights[i].shape;
  if (shape.size() <= kDimension) return false;
  shape[kDimension] = kEmpty ? 0 : shape[kDimension] + 1;
  return true;
}
bool Spoil(CheckpointTensors& weights, size_t i) {
  weights[i] = NotFinite(weights[i]);
  return true;
}

uint64_t Entries(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), uint64_t{1}, std::multiplies<>());
}

class DamagedCheckpoints : public testing::TestWithParam<std::string> {
 protected:
  Result<Opened> OpenFixture() const { return Open(FixtureOptions(GetParam()).checkpoint); }
};

// A tensor without which a checkpoint is refused is asked for with its shape and its values. One
// name too many is refused, unless it is an optimiser's.
TEST_P(DamagedCheckpoints, TensorsAreAskedFor) {
  const auto opened = OpenFixture();
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const CheckpointTensors& whole = opened->checkpoint.tensors;
  const Status sound = Load(*opened, whole);
  ASSERT_TRUE(sound.ok()) << sound.message();
  size_t refused = 0, named = 0;
  for (size_t i = 0; i < whole.size(); i += kEvery) {
    const std::string& name = whole[i].name;
    const auto refuses = [&](Damage damage) {
      CheckpointTensors weights = whole;
      if (!damage(weights, i)) return true;
      const Status status = Load(*opened, weights);
      ExpectOneLine(status, name);
      if (status.ok()) return false;
      ++refused;
      if (status.message().find(name) != std::string::npos) ++named;
      return true;
    };
    EXPECT_TRUE(refuses(Double)) << name;
    EXPECT_TRUE(refuses(Rename) || std::regex_search(name, std::regex("Adam|Variable|global_step")))
        << name;
    // A buffer, a copy of a tied tensor, one number whatever its rank, or a half of a layer that is
    // not read.
    if (!refuses(Drop) || Entries(whole[i].shape) < 2 || name == "bert.pooler.dense.weight")
      continue;
    for (const Damage damage : {AddRank, Resize<0, false>, Resize<0, true>, Resize<1, false>,
                                Resize<1, true>, Resize<2, false>, Spoil}) {
      EXPECT_TRUE(refuses(damage)) << name;
    }
    // The other order of positions and lengths may fit too.
    EXPECT_TRUE(refuses(Transpose) || name == "Model/kdq_emb/centroids_k") << name;
  }
  // Others name what the family expected in the tensor's place. Of few tensors more may do so.
  EXPECT_GT(named * 7, refused * (kEvery == 1 ? 6 : 4)) << named << " of " << refused;
}

// Tensors that may be missing are no part of the network, or are stored under another name too;
// otherwise a note tells what stands in for them. One number more or less may be a cache's. Without
// its trained weight a weight-dropped layer looks like a plain one, and DPQ-SX like DPQ-VQ.
TEST_P(DamagedCheckpoints, WhatMayBeMissingChangesNothing) {
  const auto opened = OpenFixture();
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const CheckpointTensors& whole = opened->checkpoint.tensors;
  const auto sound = LoadModel(*opened, whole);
  for (size_t i = 0; i < whole.size(); i += kEvery) {
    CheckpointTensors weights = whole;
    Drop(weights, i);
    const auto loaded = LoadModel(*opened, weights);
    if (!loaded.ok() || Entries(whole[i].shape) < 2) continue;
    if (loaded->notes != sound->notes || whole[i].name.ends_with("_raw") ||
        whole[i].name == "Model/kdq_emb/centroids_v") {
      continue;
    }
    EXPECT_EQ(ValuesOf(*loaded), ValuesOf(*sound)) << whole[i].name;
  }
}

// Tables that the framework ties are read from a checkpoint that stores them once, under either
// name.
TEST(TiedTables, MayBeStoredOnce) {
  const std::string data = KINGLET_TEST_DATA "/";
  const struct {
    const char* folder;
    std::array<const char*, 2> names;
  } cases[] = {
      {"bert/mlm-tied-copies",
       {"bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"}},
      {"fairseq-variants/cfg-plain-shared",
       {"decoder.embed_tokens.weight", "decoder.output_projection.weight"}},
      {"fairseq-variants/args-tied-legacy",
       {"decoder.embed_tokens.embeddings.0.0.weight",
        "decoder.adaptive_softmax.head.word_proj.weight"}},
      {"fairseq-variants/args-tied-legacy",
       {"decoder.embed_tokens.embeddings.2.0.weight", "decoder.adaptive_softmax.tail.1.2.weight"}},
      {"fairseq-variants/args-tied-legacy",
       {"decoder.embed_tokens.embeddings.1.1.weight", "decoder.adaptive_softmax.tail.0.0.weight"}},
      {"gpt2/old-file-with-masks", {"transformer.wte.weight", "lm_head.weight"}},
      {"micronet-variants/four-bins-zip", {"embed.layers.1.weight", "loss.layers.1.weight"}},
      {"recurrent-variants/awd-lstm-dropped-state-dict", {"encoder.weight", "decoder.weight"}},
      {"recurrent-variants/awd-lstm-split", {"encoder.weight", "decoder.weight"}},
      {"transformer-xl-variants/hf-published",
       {"transformer.word_emb.emb_layers.1.weight", "crit.out_layers.1.weight"}},
  };
  for (const auto& [folder, names] : cases) {
    const auto opened = Open(FixtureOptions(data + folder).checkpoint);
    ASSERT_TRUE(opened.ok()) << folder << opened.status().message();
    const CheckpointTensors& whole = opened->checkpoint.tensors;
    const auto expected = LoadModel(*opened, whole);
    ASSERT_TRUE(expected.ok()) << folder << expected.status().message();
    for (const char* const name : names) {
      CheckpointTensors weights = whole;
      const auto dropped =
          std::remove_if(weights.begin(), weights.end(),
                         [&](const CheckpointTensor& tensor) { return tensor.name == name; });
      EXPECT_EQ(weights.end() - dropped, 1) << folder << name;
      weights.erase(dropped, weights.end());
      // The names that are left still tell the family.
      const auto family = ChooseFamily("", InputOf(opened->checkpoint, weights));
      ASSERT_TRUE(family.ok()) << folder << name << family.status().message();
      EXPECT_EQ(*family, opened->family) << folder << name;
      const auto loaded = LoadModel(*opened, weights);
      ASSERT_TRUE(loaded.ok()) << folder << name << loaded.status().message();
      EXPECT_EQ(ValuesOf(*loaded), ValuesOf(*expected)) << folder << name;
    }
  }
}

// kimiyoung's options tie tables and projections; the modules of a checkpoint have neither.
TEST(TiedTables, OfKimiyoungAsAConfigurationStates) {
  const TemporaryFile config("tied: true\ntie_projs: [true, false, true]\n", ".yaml");
  const auto opened =
      Open(FixtureOptions(KINGLET_TEST_DATA "/transformer-xl-variants/kimi-projected").checkpoint);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const CheckpointTensors& whole = opened->checkpoint.tensors;
  const auto expected = LoadModel(*opened, whole);
  for (const std::string name : {"word_emb.emb_layers.0.weight", "crit.out_layers.0.weight",
                                 "word_emb.emb_projs.0", "crit.out_projs.0", "crit.out_projs.2"}) {
    CheckpointTensors weights = whole;
    std::erase_if(weights, [&](const CheckpointTensor& tensor) { return tensor.name == name; });
    FamilyInput input = InputOf(opened->checkpoint, weights);
    const std::string refusal = LoadFamily(*opened->family, input).status().message();
    EXPECT_NE(refusal.find("missing " + name + " (if " + name + " is "), std::string::npos);
    EXPECT_NE(refusal.find("--config with "), std::string::npos) << refusal;
    input.config = config.path();
    auto loaded = LoadFamily(*opened->family, input);
    ASSERT_TRUE(loaded.ok()) << name << loaded.status().message();
    ASSERT_TRUE(ReadTensors(*loaded).ok());
    EXPECT_EQ(ValuesOf(*loaded), ValuesOf(*expected)) << name;
  }
  const TemporaryFile wrong("tie_projs: [true, true, true]\n", ".yaml");
  FamilyInput input = InputOf(opened->checkpoint, whole);
  input.config = wrong.path();
  EXPECT_NE(LoadFamily(*opened->family, input).status().message().find("as tie_projs is true"),
            std::string::npos);
}

TEST(TiedTables, OfOpenNmtMayHaveAnyOfTheirNames) {
  OpenNmtSettings settings;
  settings.shares_embeddings = settings.shares_generator = true;
  const std::string table = "coder.embeddings.make_embedding.emb_luts.0.weight";
  const std::array<std::string, 3> names = {"en" + table, "de" + table, "generator.0.weight"};
  for (const std::string& stored : names) {
    CheckpointTensors weights(1);
    weights.front().name = stored;
    Network network(weights);
    ShareOpenNmtTables(settings, network);
    for (const std::string& name : names) {
      ASSERT_TRUE(network.Has(name)) << stored << " for " << name;
      EXPECT_EQ(network.Find(name)->name, stored);
    }
  }
}

// OpenNMT-py 3 saves the generator without a Sequential around it.
TEST(TiedTables, TheGeneratorOfOpenNmt3) {
  const auto opened = Open(FixtureOptions(KINGLET_TEST_DATA "/opennmt/plain").checkpoint);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  CheckpointTensors weights = opened->checkpoint.tensors;
  const auto expected = LoadModel(*opened, weights);
  for (CheckpointTensor& tensor : weights) {
    if (tensor.name.starts_with("generator.0.")) tensor.name.erase(10, 2);
  }
  const auto loaded = LoadModel(*opened, weights);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(ValuesOf(*loaded), ValuesOf(*expected));
}

// Without an option that ties them, a table that is missing is missing; the refusal tells how the
// user states a tie.
// A tensor in a form that is not read, or under another name, is not one that a default ties.
TEST(TiedTables, ATensorThatIsThereIsNotReplaced) {
  const std::string path =
      KINGLET_TEST_DATA "/recurrent-variants/awd-lstm-dropped-state-dict/model.pt";
  const auto opened = OpenCheckpointFile(path);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  CheckpointTensors weights = opened->tensors;
  std::erase_if(weights, [](const auto& tensor) { return tensor.name == "decoder.weight"; });
  const Family& family = *FamilyNamed("awd-lstm");
  FamilyInput input = InputOf(*opened, weights);
  EXPECT_TRUE(LoadFamily(family, input).ok());
  const std::vector<std::string> unread = {"decoder.weight"};
  input.unread_names = unread;
  EXPECT_NE(
      LoadFamily(family, input).status().message().find("tensor decoder.weight: expected a form"),
      std::string::npos);
  input.unread_names = {};
  weights.push_back(opened->tensors.front());
  weights.back().name = "decoder.wieght";
  const FamilyInput renamed = InputOf(*opened, weights);
  EXPECT_NE(LoadFamily(family, renamed).status().message().find("missing decoder.weight; unused"),
            std::string::npos);
}

TEST(TiedTables, ATieIsNotGuessed) {
  const std::string data = KINGLET_TEST_DATA "/";
  const std::pair<const char*, std::array<const char*, 2>> cases[] = {
      {"recurrent-variants/examples-lstm-state-dict",
       {"decoder.weight",
        "if decoder.weight is encoder.weight: config.yaml next to it, or --config, "
        "with tied: true"}},
      {"speech-lm-variants/icefall-rnn-tied", {"output_linear.weight", "'tie_weights': True"}},
      {"speech-lm-variants/espnet-rnn-lstm", {"lm.decoder.weight", "tie_weights: true in lm_conf"}},
      {"gpt2/untied-relu", {"lm_head.weight", "\"tie_word_embeddings\": true in config.json"}},
      {"bert/mlm-untied",
       {"cls.predictions.decoder.weight", "\"tie_word_embeddings\": true in config.json"}}};
  for (const auto& [folder, texts] : cases) {
    const auto opened = Open(FixtureOptions(data + folder).checkpoint);
    ASSERT_TRUE(opened.ok()) << folder << opened.status().message();
    CheckpointTensors weights = opened->checkpoint.tensors;
    std::erase_if(weights, [&texts = texts](const CheckpointTensor& tensor) {
      return tensor.name == texts[0];
    });
    const Status status = Load(*opened, weights);
    for (const std::string& text : {std::string("missing ") + texts[0], std::string(texts[1])}) {
      EXPECT_NE(status.message().find(text), std::string::npos) << folder << status.message();
    }
  }
}

// The lines of a family's first fixture whose largest matrix is renamed, dropped, transposed and
// doubled. With KINGLET_WRITE_DAMAGES the test writes them.
TEST(DamagedTensors, OneLineEach) {
  std::string lines;
  std::set<std::string_view> families;
  for (const std::string& folder : Folders()) {
    const auto opened = Open(FixtureOptions(folder).checkpoint);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    if (!families.insert(opened->family->name).second) continue;
    const CheckpointTensors& whole = opened->checkpoint.tensors;
    size_t largest = 0;
    for (size_t i = 0; i < whole.size(); ++i) {
      CheckpointTensors copy = whole;
      const bool needed = !(Drop(copy, i), Load(*opened, copy)).ok();
      if (needed && whole[i].shape.size() == 2 && whole[i].shape[0] != whole[i].shape[1] &&
          (whole[largest].shape.size() != 2 ||
           Count(whole[i].shape) > Count(whole[largest].shape))) {
        largest = i;
      }
    }
    lines += std::string(opened->family->name) + "\n";
    for (const Damage damage : {Rename, Drop, Transpose, Double}) {
      CheckpointTensors weights = whole;
      damage(weights, largest);
      lines += "  " + Load(*opened, weights).message() + "\n";
    }
  }
  EXPECT_EQ(families.size(), Families().size());
  const std::string path = KINGLET_TEST_DATA "/mistakes/damaged_tensors.txt";
  if (std::getenv("KINGLET_WRITE_DAMAGES") != nullptr) std::ofstream(path) << lines;
  EXPECT_EQ(lines, ReadText(path)) << "KINGLET_WRITE_DAMAGES=1 with this test writes the lines";
}

// --- what torch.save wrote next to the tensors

using Node = PickleNode;
using Change = std::function<void(Node&)>;

// The scalars that `node` has, not those of long lists (vocabularies).
void FindScalars(Node& node, std::set<const Node*>& seen, std::vector<Node*>& scalars) {
  if (!seen.insert(&node).second) return;
  const auto visit = [&](Node* child) {
    if (child != nullptr) FindScalars(*child, seen, scalars);
  };
  if (auto* list = node.As<PickleList>()) {
    if (list->items.size() > 8) return;
    for (Node* item : list->items) visit(item);
  } else if (auto* dict = node.As<PickleDict>()) {
    if (dict->items.size() > 200) return;
    for (auto& [key, value] : dict->items) visit(value);
  } else if (auto* object = node.As<PickleObject>()) {
    visit(object->arguments);
    visit(object->state);
    for (auto& [key, value] : object->items) visit(value);
  } else if (node.As<PickleTensor>() == nullptr) {
    scalars.push_back(&node);
  }
}

TEST_P(DamagedCheckpoints, SavedOptionsAreAskedFor) {
  const auto opened = OpenFixture();
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  if (!opened->checkpoint.checkpoint) GTEST_SKIP() << "not written by torch.save";
  // The nodes belong to a checkpoint that only this test uses.
  auto& root = const_cast<Node&>(opened->checkpoint.checkpoint->root());
  std::set<const Node*> seen;
  std::vector<Node*> scalars;
  FindScalars(root, seen, scalars);
  if (scalars.empty()) GTEST_SKIP() << "a state dict alone";
  const std::vector<Change> changes = {
      [](Node& node) { node.value = PickleNone{}; },
      [](Node& node) { node.value = int64_t{-1}; },
      [](Node& node) { node.value = int64_t{3}; },
      [](Node& node) { node.value = int64_t{1} << 40; },
      [](Node& node) { node.value = 0.5; },
      [](Node& node) { node.value = std::string("other"); },
      [](Node& node) { node.value = PickleList{}; },
      [](Node& node) {
        const bool* const was = node.As<bool>();
        node.value = was == nullptr || !*was;
      },
  };
  for (size_t i = 0; i < scalars.size(); i += kEvery) {
    const Node before = *scalars[i];
    for (size_t change = 0; change < changes.size(); ++change) {
      changes[change](*scalars[i]);
      ExpectOneLine(Load(*opened, opened->checkpoint.tensors),
                    "scalar " + std::to_string(i) + ", change " + std::to_string(change));
      *scalars[i] = before;
    }
  }
  const Status sound = Load(*opened, opened->checkpoint.tensors);
  EXPECT_TRUE(sound.ok()) << sound.message();
}

// --- configurations in files

using Json = nlohmann::ordered_json;

// Every text that is a JSON text with one value changed.
void ChangeJson(const Json& whole, const std::function<void(const std::string&)>& use) {
  const Json values[] = {nullptr,       true,           -1,      0, 3, 1e18, 0.5, "other",
                         Json::array(), Json::object(), {1, "x"}};
  const Json flat = whole.flatten();
  for (auto& [pointer, unused] : flat.items()) {
    const Json::json_pointer place(pointer);
    for (const Json& value : values) {
      Json changed = whole;
      changed[place] = value;
      use(changed.dump());
    }
    if (place.empty() || !whole[place.parent_pointer()].is_object()) continue;
    Json changed = whole;
    changed[place.parent_pointer()].erase(place.back());
    use(changed.dump());
  }
}

// Every YAML text with one line changed.
void ChangeYaml(const std::string& whole, const std::function<void(const std::string&)>& use) {
  const char* const values[] = {"",      " -1",    " 0",      " 3",      " 1000000000000000000",
                                " true", " other", " [1, x]", " {a: 1}", " !ref <nothing>"};
  for (size_t start = 0; start < whole.size();) {
    const size_t end = std::min(whole.find('\n', start), whole.size());
    const std::string line = whole.substr(start, end - start);
    const size_t colon = line.find(": ");
    const std::string before = whole.substr(0, start), after = whole.substr(end);
    if (colon != std::string::npos && line.find_first_not_of(' ') != line.find('#')) {
      use(before + after);
      for (const char* const value : values)
        use(before + line.substr(0, colon + 1) + value + after);
    }
    start = end + 1;
  }
}

TEST_P(DamagedCheckpoints, ConfigurationsAreAskedFor) {
  namespace fs = std::filesystem;
  const TemporaryFolder copy;
  fs::copy(GetParam(), copy.Path("c"), fs::copy_options::recursive);
  size_t refused = 0, count = 0;
  const auto load = [&]() -> Status {
    const ConvertOptions options = FixtureOptions(copy.Path("c"));
    KINGLET_ASSIGN_OR_RETURN(const Opened opened, Open(options.checkpoint));
    return Load(opened, opened.checkpoint.tensors, options.config);
  };
  std::vector<fs::path> configurations;
  for (const auto& entry : fs::recursive_directory_iterator(copy.Path("c"))) {
    const std::string end = entry.path().extension();
    if (end == ".json" || end == ".yaml") configurations.push_back(entry.path());
  }
  if (configurations.empty()) GTEST_SKIP() << "has no configuration";
  for (const fs::path& path : configurations) {
    const std::string whole = ReadText(path);
    const auto use = [&](const std::string& text) {
      if (++count % kEvery != 0) return;
      fs::remove(path);
      std::ofstream(path, std::ios::binary) << text;
      const Status status = load();
      ExpectOneLine(status, path.string() + ": " + text);
      if (!status.ok()) ++refused;
    };
    if (path.extension() == ".json") {
      ChangeJson(Json::parse(whole), use);
    } else {
      ChangeYaml(whole, use);
    }
    fs::remove(path);
    std::ofstream(path, std::ios::binary) << whole;
  }
  EXPECT_GT(refused, 0u);
  EXPECT_EQ(load().message(), "");
}

INSTANTIATE_TEST_SUITE_P(All, DamagedCheckpoints, testing::ValuesIn(Folders()), FolderTestName);

}  // namespace
}  // namespace kinglet::damaged_checkpoints_test
