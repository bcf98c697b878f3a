// Checkpoints of every family, with one damage at a time: a tensor that is missing, of another
// shape or not finite, an entry of a configuration that is missing or of another kind. Each is
// loaded or refused in one line that names a file.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/checkpoints/checkpoint_path.h"
#include "converters/families/families.h"
#include "tests/converters/synthetic.h"

namespace kinglet::damaged_checkpoints_test {
namespace {

// With sanitizers, every kind of damage at fewer locations.
#ifdef KINGLET_SANITIZED
constexpr size_t kEvery = 7;
#else
constexpr size_t kEvery = 1;
#endif

const char* const kFolders[] = {
    "bert/mlm-untied",
    "bert/question-answering-unused-pooler",
    "bert/pretraining",
    "bert/classifier-3",
    "fairseq-variants/args-tied-legacy",
    "fairseq-variants/args-characters-adaptive",
    "fairseq-variants/args-learned-positions-unscaled",
    "fairseq-variants/args-plain-projected",
    "fairseq-variants/cfg-characters-plain",
    "fairseq-variants/cfg-plain-shared",
    "micronet-variants/one-bin-9bit",
    "micronet-variants/8bit-pruned-zip",
    "micronet-variants/four-bins-zip",
    "opennmt/plain",
    "opennmt-recurrent/brnn-gru-dot-shared",
    "opennmt-recurrent/brnn-lstm-mlp-bridge",
    "opennmt-recurrent/rnn-lstm-none",
    "recurrent-variants/awd-lstm-plain-module",
    "recurrent-variants/awd-lstm-split",
    "recurrent-variants/awd-qrnn-split-cache-unused",
    "recurrent-variants/define-awd-three-bands",
    "recurrent-variants/examples-gru-tied",
    "recurrent-variants/examples-lstm-safetensors",
    "recurrent-variants/examples-lstm-untied",
    "recurrent-variants/zaremba-basic-1-forget",
    "recurrent-variants/zaremba-block-2",
    "recurrent-variants/zaremba-dpq-sx-additive-forget",
    "recurrent-variants/zaremba-dpq-vq-bundle",
    "speech-lm-variants/espnet-rnn-gru-averaged",
    "speech-lm-variants/espnet-transformer",
    "speech-lm-variants/espnet-transformer-sinusoidal-old-names",
    "speech-lm-variants/icefall-rnn-tied",
    "speech-lm-variants/icefall-rnn-untied-sos-2",
    "speech-lm-variants/icefall-transformer",
    "speech-lm-variants/speechbrain-rnn-relu-resolved",
    "speech-lm-variants/speechbrain-transformer-post",
    "speech-lm-variants/speechbrain-transformer-pre",
    "transformer-xl-variants/hf-projected-bfloat16",
    "transformer-xl-variants/hf-published",
    "transformer-xl-variants/kimi-base",
    "transformer-xl-variants/kimi-projected",
    "transformer-xl-variants/kimi-divided-pre-norm-zip",
};

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

Status Load(const Opened& opened, const CheckpointTensors& weights) {
  const CheckpointFile& checkpoint = opened.checkpoint;
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, opened.family->load(InputOf(checkpoint, weights)));
  return ReadTensors(model);
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

class DamagedCheckpoints : public testing::TestWithParam<const char*> {
 protected:
  std::string folder() const { return std::string(KINGLET_TEST_DATA) + "/" + GetParam(); }
};

TEST_P(DamagedCheckpoints, TensorsAreAskedFor) {
  const auto opened = Open(folder());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const CheckpointTensors& whole = opened->checkpoint.tensors;
  const Status sound = Load(*opened, whole);
  ASSERT_TRUE(sound.ok()) << sound.message();
  size_t refused = 0, named = 0, changes = 0;
  for (size_t i = 0; i < whole.size(); i += kEvery) {
    const std::string& name = whole[i].name;
    const auto check = [&](const std::string& what, const CheckpointTensors& weights) {
      const Status status = Load(*opened, weights);
      ExpectOneLine(status, name + ", " + what);
      ++changes;
      refused += status.ok() ? 0 : 1;
      named += !status.ok() && status.message().find(name) != std::string::npos ? 1 : 0;
    };
    CheckpointTensors changed = whole;
    changed.erase(changed.begin() + static_cast<ptrdiff_t>(i));
    check("gone", changed);
    changed = whole;
    changed[i].name += "_elsewhere";
    check("renamed", changed);
    changed = whole;
    changed[i].shape.push_back(1);
    check("of another rank", changed);
    for (size_t dimension = 0; dimension < whole[i].shape.size(); ++dimension) {
      changed = whole;
      ++changed[i].shape[dimension];
      check("longer", changed);
      changed[i].shape[dimension] = 0;
      check("empty", changed);
    }
    changed = whole;
    changed[i] = NotFinite(changed[i]);
    check("not finite", changed);
  }
  // Buffers, and what only some options need, may be missing.
  EXPECT_GT(refused * 2, changes) << refused << " of " << changes;
  EXPECT_GT(named * 2, refused) << named << " of " << refused;
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
  const auto opened = Open(folder());
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

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

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
  fs::copy(folder(), copy.Path("c"), fs::copy_options::recursive);
  size_t loaded = 0, refused = 0, count = 0;
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
      const auto opened = Open(copy.Path("c"));
      const Status status =
          opened.ok() ? Load(*opened, opened->checkpoint.tensors) : opened.status();
      ExpectOneLine(status, path.string() + ": " + text);
      ++(status.ok() ? loaded : refused);
    };
    if (path.extension() == ".json") {
      ChangeJson(Json::parse(whole), use);
    } else {
      ChangeYaml(whole, use);
    }
    fs::remove(path);
    std::ofstream(path, std::ios::binary) << whole;
  }
  EXPECT_GT(refused, 0u) << loaded << " loaded";
  if (kEvery == 1) {
    EXPECT_GT(loaded, 0u) << refused << " refused";
  }
}

std::string NameOf(const testing::TestParamInfo<const char*>& instance) {
  std::string name = instance.param;
  for (char& c : name) {
    if (c == '/' || c == '-') c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, DamagedCheckpoints, testing::ValuesIn(kFolders), NameOf);

}  // namespace
}  // namespace kinglet::damaged_checkpoints_test
