#include "converters/families/fairseq_config.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "converters/families/pickled_options.h"
#include "converters/sources/quoted.h"
#include "format/limits.h"

namespace kinglet {
namespace {

// The longest block of tokens, for checkpoints that give none.
constexpr uint32_t kDefaultPositions = 1024;

// The option, or null if it is absent or None, or `options` is null.
const PickleNode* Entry(const PickleNode* options, std::string_view name) {
  const PickleNode* found = options == nullptr ? nullptr : PickledOption(*options, name);
  return found == nullptr || found->As<PickleNone>() != nullptr ? nullptr : found;
}

// The numbers of "20000,60000", as the command line takes them, also in brackets. None for any
// other text.
std::optional<std::vector<int64_t>> ParseIntegers(std::string text) {
  std::erase_if(text,
                [](char c) { return std::string_view(" []()").find(c) != std::string::npos; });
  std::vector<int64_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int64_t number = 0;
    const auto parsed = std::from_chars(at, end, number);
    if (parsed.ec != std::errc()) return std::nullopt;
    numbers.push_back(number);
    at = parsed.ptr;
    if (at != end && *at++ != ',') return std::nullopt;
  }
  return numbers;
}

// The pairs of "[(1, 64), (2, 128)]", as the command line takes filters: Python's text of a list or
// tuple of pairs. None for any other text.
std::optional<std::vector<std::vector<int64_t>>> ParsePairs(std::string text) {
  std::erase(text, ' ');
  std::replace(text.begin(), text.end(), '[', '(');
  std::replace(text.begin(), text.end(), ']', ')');
  const bool enclosed = text.starts_with("((") && text.ends_with(')');
  if (enclosed) text = text.substr(1, text.size() - 2);
  std::vector<std::vector<int64_t>> pairs;
  std::string_view left = text;
  while (!left.empty()) {
    const size_t end = left.find(')');
    if (left.front() != '(' || end == std::string_view::npos) return std::nullopt;
    const std::string_view pair = left.substr(1, end - 1);
    const auto numbers = ParseIntegers(std::string(pair));
    if (!numbers || pair.find('(') != std::string_view::npos) return std::nullopt;
    pairs.push_back(*numbers);
    left.remove_prefix(end + 1);
    if (left.empty()) break;
    if (left.front() != ',') return std::nullopt;
    left.remove_prefix(1);
  }
  if (!enclosed && pairs.size() == 1) return std::nullopt;  // "[1, 64]" is a pair, not a list
  return pairs;
}

// The integers of a list; none if an item is something else.
std::optional<std::vector<int64_t>> IntegersOf(const PickleNode& node) {
  const auto* list = node.As<PickleList>();
  if (list == nullptr) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const PickleNode* item : list->items) {
    const auto* number = item->As<int64_t>();
    if (number == nullptr) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

class FairseqConfigReader {
 public:
  // Hyper-parameters are looked for in `model`, then in `task`, which may be null.
  FairseqConfigReader(std::string where, const PickleNode& model, const PickleNode* task)
      : where_(std::move(where)), model_(model), task_(task) {}

  Result<FairseqConfig> Read() {
    KINGLET_RETURN_IF_ERROR(CheckSupported());
    KINGLET_RETURN_IF_ERROR(ReadSizes());
    KINGLET_RETURN_IF_ERROR(ReadPositions());
    KINGLET_RETURN_IF_ERROR(ReadFinalNorm());
    KINGLET_RETURN_IF_ERROR(ReadTables());
    KINGLET_ASSIGN_OR_RETURN(const bool unscaled, Truth("no_scale_embedding"));
    config_.scaled = !unscaled;
    return std::move(config_);
  }

 private:
  Status Refuse(std::string_view name, const std::string& expected,
                const std::string& found) const {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint",
                           where_ + "." + std::string(name), expected, found);
  }

  const PickleNode* Find(std::string_view name) const {
    const PickleNode* found = Entry(&model_, name);
    return found != nullptr ? found : Entry(task_, name);
  }

  // False if it is absent.
  Result<bool> Truth(std::string_view name) const {
    const PickleNode* node = Find(name);
    if (node == nullptr) return false;
    if (const auto* truth = node->As<bool>()) return *truth;
    if (const auto* number = node->As<int64_t>()) return *number != 0;
    return Refuse(name, "True or False", node->Describe());
  }

  Result<uint32_t> InRange(std::string_view name, int64_t value, uint64_t most) const {
    if (value >= 1 && static_cast<uint64_t>(value) <= most) return static_cast<uint32_t>(value);
    return Refuse(name, "1 to " + std::to_string(most), std::to_string(value));
  }

  Result<uint32_t> Size(std::string_view name, uint64_t most) const {
    const PickleNode* node = Find(name);
    if (node == nullptr) return Refuse(name, "a number", "none");
    const auto* number = node->As<int64_t>();
    if (number == nullptr) return Refuse(name, "a number", node->Describe());
    return InRange(name, *number, most);
  }
  Result<uint32_t> SizeOr(std::string_view name, uint64_t most, uint32_t otherwise) const {
    if (Find(name) == nullptr) return otherwise;
    return Size(name, most);
  }

  Status Unsupported(std::string_view name, const std::string& expected,
                     const std::string& found) const {
    return Status::Refusal(KINGLET_UNSUPPORTED, "checkpoint", where_ + "." + std::string(name),
                           expected, found);
  }

  Status CheckSupported() const {
    const PickleNode* activation = Find("activation_fn");
    const auto* name = activation == nullptr ? nullptr : activation->As<std::string>();
    if (activation != nullptr && (name == nullptr || *name != "relu")) {
      return Unsupported("activation_fn", "relu",
                         name != nullptr ? QuotedName(*name) : activation->Describe());
    }
    for (const char* other :
         {"layernorm_embedding", "no_token_positional_embeddings", "add_bos_token", "scale_attn",
          "scale_fc", "scale_heads", "scale_resids", "base_layers"}) {
      KINGLET_ASSIGN_OR_RETURN(const bool present, Truth(other));
      if (present) return Unsupported(other, "False, as in the published models", "True");
    }
    if (Find("decoder_layers_to_keep") != nullptr) {
      return Unsupported("decoder_layers_to_keep", "None, as in the published models", "a list");
    }
    return {};
  }

  Status ReadSizes() {
    KINGLET_ASSIGN_OR_RETURN(config_.layers, Size("decoder_layers", kMaxLayers));
    KINGLET_ASSIGN_OR_RETURN(config_.width, Size("decoder_embed_dim", kMaxExtent));
    KINGLET_ASSIGN_OR_RETURN(config_.inner, Size("decoder_ffn_embed_dim", kMaxExtent));
    KINGLET_ASSIGN_OR_RETURN(config_.heads, Size("decoder_attention_heads", kMaxExtent));
    KINGLET_ASSIGN_OR_RETURN(config_.input_width,
                             SizeOr("decoder_input_dim", kMaxExtent, config_.width));
    KINGLET_ASSIGN_OR_RETURN(config_.output_width,
                             SizeOr("decoder_output_dim", kMaxExtent, config_.width));
    // The sinusoids' frequencies are width / 2 numbers, divided by one less.
    if (config_.width < 4 || config_.width % 2 != 0) {
      return Refuse("decoder_embed_dim", "an even number from 4", std::to_string(config_.width));
    }
    if (config_.width % config_.heads == 0) return {};
    return Refuse("decoder_attention_heads", "a divisor of " + std::to_string(config_.width),
                  std::to_string(config_.heads));
  }

  Status ReadPositions() {
    const char* name =
        Find("max_target_positions") != nullptr ? "max_target_positions" : "tokens_per_sample";
    KINGLET_ASSIGN_OR_RETURN(config_.positions, SizeOr(name, kMaxExtent, kDefaultPositions));
    KINGLET_ASSIGN_OR_RETURN(config_.learned_positions, Truth("decoder_learned_pos"));
    return {};
  }

  // Newer versions have no_decoder_final_norm, older ones decoder_final_norm, and those with
  // no_tie_adaptive_proj had no final norm.
  Status ReadFinalNorm() {
    KINGLET_ASSIGN_OR_RETURN(const bool none, Truth("no_decoder_final_norm"));
    config_.final_norm = !none && Find("no_tie_adaptive_proj") == nullptr;
    if (Find("decoder_final_norm") == nullptr) return {};
    KINGLET_ASSIGN_OR_RETURN(config_.final_norm, Truth("decoder_final_norm"));
    return {};
  }

  Status ReadCharacters() {
    KINGLET_ASSIGN_OR_RETURN(const bool present, Truth("character_embeddings"));
    if (!present) return {};
    FairseqCharacters& characters = config_.characters.emplace();
    KINGLET_ASSIGN_OR_RETURN(characters.vector_width, SizeOr("character_embedding_dim", kMaxExtent,
                                                             characters.vector_width));
    KINGLET_ASSIGN_OR_RETURN(characters.filters, Filters("character_filters"));
    const char* layers = "char_embedder_highway_layers";
    const PickleNode* node = Find(layers);
    const auto* number = node == nullptr ? nullptr : node->As<int64_t>();
    if (number != nullptr && *number == 0) {
      characters.highway_layers = 0;
      return {};
    }
    KINGLET_ASSIGN_OR_RETURN(characters.highway_layers,
                             SizeOr(layers, kMaxLayers, characters.highway_layers));
    return {};
  }

  Result<std::vector<FairseqCharacters::Filter>> Filters(std::string_view name) const {
    // fairseq's DEFAULT_CHARACTER_FILTERS.
    static constexpr FairseqCharacters::Filter kDefault[] = {{1, 64},  {2, 128}, {3, 192}, {4, 256},
                                                             {5, 256}, {6, 256}, {7, 256}};
    const PickleNode* node = Find(name);
    if (node == nullptr) return std::vector(std::begin(kDefault), std::end(kDefault));
    const std::string expected = "a list of pairs (width, channels), widths from 1 to " +
                                 std::to_string(FairseqCharacters::kLongest);
    std::optional<std::vector<std::vector<int64_t>>> pairs;
    if (const auto* text = node->As<std::string>()) {
      pairs = ParsePairs(*text);
      if (!pairs) return Refuse(name, expected, QuotedName(*text));
    } else if (const auto* list = node->As<PickleList>()) {
      pairs.emplace();
      for (const PickleNode* item : list->items) {
        const auto pair = IntegersOf(*item);
        if (!pair) return Refuse(name, expected, "a list with " + item->Describe());
        pairs->push_back(*pair);
      }
    } else {
      return Refuse(name, expected, node->Describe());
    }
    if (pairs->empty()) return Refuse(name, expected, "none");
    std::vector<FairseqCharacters::Filter> filters;
    for (const std::vector<int64_t>& pair : *pairs) {
      if (pair.size() != 2) {
        return Refuse(name, expected, std::to_string(pair.size()) + " numbers");
      }
      KINGLET_ASSIGN_OR_RETURN(const uint32_t width,
                               InRange(name, pair[0], FairseqCharacters::kLongest));
      KINGLET_ASSIGN_OR_RETURN(const uint32_t channels, InRange(name, pair[1], kMaxExtent));
      filters.push_back({width, channels});
    }
    return filters;
  }

  Status ReadTables() {
    KINGLET_RETURN_IF_ERROR(ReadCharacters());
    KINGLET_ASSIGN_OR_RETURN(const bool adaptive, Truth("adaptive_input"));
    if (adaptive && !config_.characters) {
      KINGLET_ASSIGN_OR_RETURN(config_.input,
                               Bands("adaptive_input_cutoff", "adaptive_input_factor"));
      if (config_.input.cutoffs.empty()) {
        return Refuse("adaptive_input_cutoff", "a list, as adaptive_input is set", "none");
      }
    }
    KINGLET_ASSIGN_OR_RETURN(config_.output,
                             Bands("adaptive_softmax_cutoff", "adaptive_softmax_factor"));
    const bool adaptive_softmax = !config_.output.cutoffs.empty();
    const char* tie =
        adaptive_softmax ? "tie_adaptive_weights" : "share_decoder_input_output_embed";
    KINGLET_ASSIGN_OR_RETURN(config_.tied_tables, Truth(tie));
    KINGLET_ASSIGN_OR_RETURN(bool tied_projections, Truth("tie_adaptive_proj"));
    if (Find("no_tie_adaptive_proj") != nullptr) {
      KINGLET_ASSIGN_OR_RETURN(const bool not_tied, Truth("no_tie_adaptive_proj"));
      tied_projections = tied_projections || !not_tied;
    }
    config_.tied_projections = config_.tied_tables && adaptive_softmax && tied_projections;
    return CheckTies(tie);
  }

  Result<FairseqBands> Bands(std::string_view cutoffs, std::string_view factor) const {
    FairseqBands bands;
    const PickleNode* node = Find(cutoffs);
    if (node == nullptr) return bands;
    const std::string expected = "ascending words from 1, at most " + std::to_string(kMaxBins - 1);
    std::optional<std::vector<int64_t>> words;
    if (const auto* text = node->As<std::string>()) {
      words = ParseIntegers(*text);
      if (!words) return Refuse(cutoffs, expected, QuotedName(*text));
    } else {
      words = IntegersOf(*node);
      if (!words) return Refuse(cutoffs, expected, node->Describe());
    }
    if (words->size() >= kMaxBins) return Refuse(cutoffs, expected, std::to_string(words->size()));
    int64_t before = 0;
    for (const int64_t word : *words) {
      if (word <= before || word > static_cast<int64_t>(kMaxDimension)) {
        return Refuse(cutoffs, expected, std::to_string(word));
      }
      bands.cutoffs.push_back(static_cast<uint32_t>(word));
      before = word;
    }
    KINGLET_ASSIGN_OR_RETURN(bands.factor, SizeOr(factor, kMaxExtent, bands.factor));
    return bands;
  }

  // Refuses ties that fairseq itself refuses.
  Status CheckTies(const char* tie) const {
    if (!config_.tied_tables) return {};
    if (config_.characters) {
      return Refuse(tie, "False, as the input is computed from characters", "True");
    }
    if (config_.input_width != config_.output_width) {
      return Refuse(tie, "False, as decoder_input_dim and decoder_output_dim differ", "True");
    }
    if (config_.output.cutoffs.empty()) {
      if (config_.input.cutoffs.empty()) return {};
      return Refuse(tie, "False, as the input is adaptive and the softmax is not", "True");
    }
    if (config_.input.cutoffs != config_.output.cutoffs ||
        config_.input.factor != config_.output.factor) {
      return Refuse(tie, "False, as the bands of input and softmax differ", "True");
    }
    if (config_.width == config_.output_width) return {};
    return Refuse(tie, "False, as decoder_embed_dim and decoder_output_dim differ", "True");
  }

  const std::string where_;
  const PickleNode& model_;
  const PickleNode* const task_;
  FairseqConfig config_;
};

}  // namespace

Result<FairseqConfig> ReadFairseqConfig(const PickleNode& root) {
  if (const PickleNode* args = Entry(&root, "args")) {
    return FairseqConfigReader("args", *args, nullptr).Read();
  }
  const PickleNode* config = Entry(&root, "cfg");
  if (const PickleNode* model = Entry(config, "model")) {
    return FairseqConfigReader("cfg.model", *model, Entry(config, "task")).Read();
  }
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", "hyper-parameters",
                         "'args' or 'cfg' with 'model' beside the state dict, as fairseq saves",
                         config != nullptr ? "'cfg' without 'model'" : "neither");
}

}  // namespace kinglet
