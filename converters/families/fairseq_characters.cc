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
  for (size_t id = 0; id < kSpecials.size(); ++id) words[id].clear();
  return words;
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
  std::vector<const CheckpointTensor*> tensors;
  uint64_t parameters = 0;
  for (const auto& [name, shape] : CharacterTensors(*config.characters, width)) {
    tensors.push_back(network.Claim(name, shape));
    parameters += CountEntries(shape);
  }
  const auto long_words = std::count_if(
      dictionary.words.begin(), dictionary.words.end(),
      [](const std::string& word) { return word.size() > FairseqCharacters::kLongest; });
  network.model.notes.push_back("the character CNN, " + std::to_string(parameters) +
                                " parameters, becomes its table of " + std::to_string(words) +
                                " x " + std::to_string(width));
  if (long_words > 0) {
    const std::string most = std::to_string(FairseqCharacters::kLongest);
    network.model.notes.push_back("words longer than " + most + " bytes, of which only the first " +
                                  most + " count: " + std::to_string(long_words));
  }
  return network.AddJoined(
      "decoder.embed_tokens.weight", {words, width}, Role::kPrunedAlso, tensors,
      {{{"characters",
         {},
         [characters = *config.characters, width, features = FeaturesOf(*config.characters),
          spellings = Spellings(dictionary.words)](
             const std::vector<float>& values) -> Result<std::vector<float>> {
           Splitter splitter(values);
           const CharacterCnn cnn = SplitCnn(characters, width, features, splitter);
           KINGLET_ASSIGN_OR_RETURN(std::vector<float> table,
                                    CharacterTable(cnn, spellings, MachineThreads()));
           const auto row = [&table, width](uint64_t id) {
             return table.begin() + static_cast<std::ptrdiff_t>(id * width);
           };
           const std::vector<float> symbols = splitter.Next(2 * width);
           std::fill_n(row(kPaddingId), width, 0.0F);
           std::copy_n(symbols.begin(), width, row(kSentenceEndId));
           std::copy_n(symbols.begin() + static_cast<std::ptrdiff_t>(width), width,
                       row(kUnknownId));
           return table;
         }}}});
}

void MarkCharactersUnused(const FairseqConfig& config, Network& network) {
  std::vector<std::string> names;
  for (const CharacterTensor& tensor : CharacterTensors(*config.characters, config.width)) {
    names.push_back(tensor.name);
  }
  network.MarkUnused(names);
}

}  // namespace kinglet
