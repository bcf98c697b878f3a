#include "converters/families/fairseq_characters.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

#include "converters/checkpoints/quoted.h"
#include "converters/passes/character_table.h"
#include "converters/texts/vocabulary_file.h"
#include "converters/thread_shares.h"

namespace kinglet {
namespace {

constexpr std::array<std::string_view, 4> kSpecials = {"<s>", "<pad>", "</s>", "<unk>"};
constexpr uint64_t kPaddingId = 1, kSentenceEndId = 2, kUnknownId = 3;

// Splits concatenated values into the values of each tensor.
class Splitter {
 public:
  explicit Splitter(const std::vector<float>& values) : values_(values) {}

  std::vector<float> Next(uint64_t count) {
    const auto first = values_.begin() + static_cast<std::ptrdiff_t>(at_);
    at_ += count;
    return {first, first + static_cast<std::ptrdiff_t>(count)};
  }

 private:
  const std::vector<float>& values_;
  uint64_t at_ = 0;
};

struct CharacterTensor {
  std::string name;
  Shape shape;
};

uint64_t FeaturesOf(const FairseqCharacters& characters) {
  uint64_t features = 0;
  for (const FairseqCharacters::Filter& filter : characters.filters) features += filter.channels;
  return features;
}

// The CNN's tensors in the order in which they are claimed.
std::vector<CharacterTensor> CharacterTensors(const FairseqCharacters& characters, uint64_t width) {
  const uint64_t features = FeaturesOf(characters);
  std::vector<CharacterTensor> tensors;
  const auto add = [&tensors](const std::string& name, Shape shape) {
    tensors.push_back({"decoder.embed_tokens." + name, std::move(shape)});
  };
  add("char_embeddings.weight", {kCharacterSymbols, characters.vector_width});
  for (size_t i = 0; i < characters.filters.size(); ++i) {
    const auto& [filter_width, channels] = characters.filters[i];
    const std::string name = "convolutions." + std::to_string(i);
    add(name + ".weight", {channels, characters.vector_width, filter_width});
    add(name + ".bias", {channels});
  }
  for (uint32_t i = 0; i < characters.highway_layers; ++i) {
    const std::string name = "highway.layers." + std::to_string(i);
    add(name + ".weight", {2 * features, features});
    add(name + ".bias", {2 * features});
  }
  add("projection.weight", {width, features});
  add("projection.bias", {width});
  add("symbol_embeddings", {2, width});
  return tensors;
}

// The CNN of the tensors' values, in the order of CharacterTensors; later values stay in the
// splitter.
CharacterCnn SplitCnn(const FairseqCharacters& characters, uint64_t width, uint64_t features,
                      Splitter& values) {
  CharacterCnn cnn;
  cnn.longest = FairseqCharacters::kLongest;
  cnn.vector_width = characters.vector_width;
  cnn.width = width;
  cnn.vectors = values.Next(kCharacterSymbols * cnn.vector_width);
  for (const auto& [filter_width, channels] : characters.filters) {
    CharacterFilter& filter = cnn.filters.emplace_back();
    filter.width = filter_width;
    filter.channels = channels;
    filter.weight = values.Next(uint64_t{channels} * cnn.vector_width * filter_width);
    filter.bias = values.Next(channels);
  }
  for (uint32_t i = 0; i < characters.highway_layers; ++i) {
    HighwayLayer& layer = cnn.highway.emplace_back();
    layer.weight = values.Next(2 * features * features);
    layer.bias = values.Next(2 * features);
  }
  cnn.projection = values.Next(width * features);
  cnn.bias = values.Next(width);
  return cnn;
}

// The special words have spellings of paddings alone.
std::vector<std::string> Spellings(std::vector<std::string> words) {
  for (size_t id = 0; id < std::min(words.size(), kSpecials.size()); ++id) words[id].clear();
  return words;
}

std::vector<const CheckpointTensor*> ClaimCnn(const FairseqConfig& config, Network& network) {
  std::vector<const CheckpointTensor*> tensors;
  for (const auto& [name, shape] : CharacterTensors(*config.characters, config.width)) {
    tensors.push_back(network.Claim(name, shape));
  }
  return tensors;
}

uint64_t ParametersOf(const FairseqConfig& config) {
  uint64_t parameters = 0;
  for (const auto& [name, shape] : CharacterTensors(*config.characters, config.width)) {
    parameters += CountEntries(shape);
  }
  return parameters;
}

// The values of all tensors of the CNN become the rows of the first words, with these spellings.
Change TableOf(const FairseqConfig& config, std::vector<std::string> spellings) {
  return {{{"characters",
            {static_cast<double>(spellings.size())},
            [characters = *config.characters, width = uint64_t{config.width},
             spellings = std::move(spellings)](
                const std::vector<float>& values) -> Result<std::vector<float>> {
              Splitter splitter(values);
              const CharacterCnn cnn =
                  SplitCnn(characters, width, FeaturesOf(characters), splitter);
              KINGLET_ASSIGN_OR_RETURN(std::vector<float> table,
                                       CharacterTable(cnn, spellings, MachineThreads()));
              const auto row = [&table, width](uint64_t id) {
                return table.begin() + static_cast<std::ptrdiff_t>(id * width);
              };
              const std::vector<float> symbols = splitter.Next(2 * width);
              const auto trained = symbols.begin() + static_cast<std::ptrdiff_t>(width);
              if (spellings.size() > kPaddingId) std::fill_n(row(kPaddingId), width, 0.0F);
              if (spellings.size() > kUnknownId) {
                std::copy_n(symbols.begin(), width, row(kSentenceEndId));
                std::copy_n(trained, width, row(kUnknownId));
              }
              return table;
            }}}};
}

// Weights of torch.nn.Conv1d, [channels, vector, bytes], become [channels, bytes, vector].
Change ByteByByte(uint64_t channels, uint64_t vector, uint64_t bytes) {
  return {{{"byte_by_byte",
            {static_cast<double>(channels), static_cast<double>(vector)},
            [=](const std::vector<float>& values) -> Result<std::vector<float>> {
              std::vector<float> moved(values.size());
              for (uint64_t i = 0; i < values.size(); ++i) {
                const uint64_t channel = i / (vector * bytes), at = i % (vector * bytes);
                moved[(channel * bytes + at % bytes) * vector + at / bytes] = values[i];
              }
              return moved;
            }}}};
}

}  // namespace

Result<FairseqDictionary> ReadFairseqDictionary(const FamilyInput& input) {
  FairseqDictionary dictionary;
  dictionary.path = input.vocabulary;
  if (input.vocabulary.empty()) {
    const auto path = std::filesystem::path(input.checkpoint).parent_path() / "dict.txt";
    dictionary.path = path.string();
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      return Status::Refusal(KINGLET_NOT_FOUND, "dictionary", dictionary.path,
                             "fairseq's dict.txt there or as --vocab, as the model computes its "
                             "input from the words' characters",
                             "none");
    }
  }
  KINGLET_ASSIGN_OR_RETURN(VocabularyFile file,
                           ReadVocabularyFile(dictionary.path, {WordNumbers::kFairseq, 0}));
  dictionary.words = std::move(file.words);
  for (size_t id = 0; id < kSpecials.size(); ++id) {
    const bool present = id < dictionary.words.size();
    if (present && dictionary.words[id] == kSpecials[id]) continue;
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "dictionary", dictionary.path,
                           QuotedName(kSpecials[id]) + " as word " + std::to_string(id) +
                               ", or fairseq's dict.txt, which omits it",
                           present ? QuotedName(dictionary.words[id]) : "none");
  }
  return dictionary;
}

TensorId AddCharacterTable(const FairseqConfig& config, const FairseqDictionary& dictionary,
                           Network& network) {
  const uint64_t width = config.width, words = dictionary.words.size();
  const std::vector<const CheckpointTensor*> tensors = ClaimCnn(config, network);
  const auto long_words = std::count_if(
      dictionary.words.begin(), dictionary.words.end(),
      [](const std::string& word) { return word.size() > FairseqCharacters::kLongest; });
  network.model.notes.push_back("the character CNN, " + std::to_string(ParametersOf(config)) +
                                " parameters, becomes its table of " + std::to_string(words) +
                                " x " + std::to_string(width));
  if (long_words > 0) {
    const std::string most = std::to_string(FairseqCharacters::kLongest);
    network.model.notes.push_back("words longer than " + most + " bytes, of which only the first " +
                                  most + " count: " + std::to_string(long_words));
  }
  return network.AddJoined("decoder.embed_tokens.weight", {words, width}, Role::kPrunedAlso,
                           tensors, TableOf(config, Spellings(dictionary.words)));
}

Status KeepCharacters(const FairseqConfig& config, const FairseqDictionary& dictionary,
                      Network& network, AdaptiveEmbedding& embedding) {
  const FairseqCharacters& characters = *config.characters;
  const uint64_t width = config.width, features = FeaturesOf(characters);
  const auto words = static_cast<uint32_t>(dictionary.words.size());
  const auto first = static_cast<uint32_t>(kSpecials.size());
  if (words == first) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "convert", "keep-characters",
                           "words in the dictionary in addition to fairseq's own four", "none");
  }
  const std::vector<const CheckpointTensor*> tensors = ClaimCnn(config, network);
  size_t next = 0;
  const auto add = [&](Role role) {
    const CheckpointTensor* const tensor = tensors[next++];
    return tensor == nullptr ? network.Add("", {}, role, nullptr) : network.AddWhole(*tensor, role);
  };

  EmbeddingBin spelt{first, words - first, add(Role::kPrunedAlso), std::nullopt};
  spelt.spelling = SpellingRows{FairseqCharacters::kLongest, {}};
  for (const auto& [filter_width, channels] : characters.filters) {
    const CheckpointTensor* const weight = tensors[next++];
    const uint64_t bytes = filter_width;
    const TensorId matrix = network.Add(
        weight == nullptr ? "" : weight->name, {channels, bytes * characters.vector_width},
        Role::kPrunedAlso, weight, ByteByByte(channels, characters.vector_width, bytes));
    spelt.spelling->filters.push_back({filter_width, matrix, add(Role::kQuantised)});
  }
  KeptDefineUnit unit;
  unit.first_bin = 2;
  unit.bin_count = 1;
  unit.cache_rows = *characters.cache_rows;
  unit.unit.map_width = features;
  for (uint32_t i = 0; i <= characters.highway_layers; ++i) {
    DefineLayer& layer = unit.unit.layers.emplace_back();
    layer.in = features;
    layer.out = i < characters.highway_layers ? features : width;
    if (i < characters.highway_layers) {
      layer.residual = DefineLayer::Residual::kHighway;
      layer.activation = Activation::kRelu;
    }
    const TensorId weight = add(Role::kPrunedAlso);
    unit.tensors.push_back({weight, add(Role::kQuantised), std::nullopt, std::nullopt});
  }
  const TensorId trained = add(Role::kPrunedAlso);
  const TensorId computed =
      network.AddJoined("decoder.embed_tokens.specials", {2, width}, Role::kKept, tensors,
                        TableOf(config, Spellings({kSpecials.begin(), kSpecials.begin() + 2})));
  network.MarkDerived(computed);
  embedding.bins = {{0, 2, computed, std::nullopt}, {2, 2, trained, std::nullopt}, spelt};
  embedding.units = {std::move(unit)};
  network.model.notes.push_back("the character CNN, " + std::to_string(ParametersOf(config)) +
                                " parameters, stays in the model");
  return {};
}

void MarkCharactersUnused(const FairseqConfig& config, Network& network) {
  std::vector<std::string> names;
  for (const CharacterTensor& tensor : CharacterTensors(*config.characters, config.width)) {
    names.push_back(tensor.name);
  }
  network.MarkUnused(names);
}

}  // namespace kinglet
