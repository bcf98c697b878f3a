#include "converters/families/opennmt_settings.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "converters/families/pickled_options.h"
#include "converters/sources/quoted.h"
#include "converters/sources/refuse_checkpoint.h"
#include "format/limits.h"

namespace kinglet {
namespace {

// The second element of a pair whose first is a name; null for anything else.
NodeRef SecondOf(const PickleNode& pair, std::string_view* name = nullptr) {
  const auto* items = pair.As<PickleList>();
  if (items == nullptr || items->items.size() != 2) return nullptr;
  const auto* first = items->items[0]->As<std::string>();
  if (first == nullptr) return nullptr;
  if (name != nullptr) *name = *first;
  return items->items[1];
}

std::string ValueText(const PickleNode& node) {
  if (const auto* text = node.As<std::string>()) return QuotedName(*text);
  if (const auto* number = node.As<int64_t>()) return std::to_string(*number);
  if (const auto* truth = node.As<bool>()) return *truth ? "True" : "False";
  return node.Describe();
}

struct TextOption {
  std::string_view name, expected;
};
struct TruthOption {
  std::string_view name;
  bool expected;
};

// Refuses options that make another network. An absent option has the accepted value by default.
Status CheckTexts(const PickleNode& options, std::span<const TextOption> texts) {
  for (const TextOption& text : texts) {
    const NodeRef found = PickledOption(options, text.name);
    if (found == nullptr) continue;
    const auto* value = found->As<std::string>();
    if (value == nullptr || *value != text.expected) {
      return RefuseCheckpoint("option " + std::string(text.name), QuotedName(text.expected),
                              ValueText(*found));
    }
  }
  return {};
}

Status CheckTruths(const PickleNode& options, std::span<const TruthOption> truths) {
  for (const TruthOption& truth : truths) {
    const NodeRef found = PickledOption(options, truth.name);
    if (found == nullptr) continue;
    const auto* value = found->As<bool>();
    if (value == nullptr || *value != truth.expected) {
      return RefuseCheckpoint("option " + std::string(truth.name),
                              truth.expected ? "True" : "False", ValueText(*found));
    }
  }
  return {};
}

Status CheckTransformerOptions(const PickleNode& options) {
  constexpr TextOption kTexts[] = {{"encoder_type", "transformer"},
                                   {"decoder_type", "transformer"},
                                   {"model_type", "text"},
                                   {"self_attn_type", "scaled-dot"},
                                   {"generator_function", "softmax"}};
  constexpr TruthOption kTruths[] = {{"position_encoding", true},
                                     {"copy_attn", false},
                                     {"coverage_attn", false},
                                     {"aan_useffn", false}};
  KINGLET_RETURN_IF_ERROR(CheckTexts(options, kTexts));
  KINGLET_RETURN_IF_ERROR(CheckTruths(options, kTruths));
  if (const NodeRef distance = PickledOption(options, "max_relative_positions")) {
    const auto* value = distance->As<int64_t>();
    if (value == nullptr || *value != 0) {
      return RefuseCheckpoint("option max_relative_positions", "0, positions of tokens",
                              ValueText(*distance));
    }
  }
  return {};
}

Status CheckRecurrentOptions(const PickleNode& options) {
  constexpr TextOption kTexts[] = {{"decoder_type", "rnn"},
                                   {"model_type", "text"},
                                   {"global_attention_function", "softmax"},
                                   {"generator_function", "softmax"}};
  constexpr TruthOption kTruths[] = {
      {"position_encoding", false}, {"copy_attn", false}, {"coverage_attn", false}};
  KINGLET_RETURN_IF_ERROR(CheckTexts(options, kTexts));
  KINGLET_RETURN_IF_ERROR(CheckTruths(options, kTruths));
  const NodeRef gate = PickledOption(options, "context_gate");
  if (gate == nullptr || gate->As<PickleNone>() != nullptr) return {};
  return RefuseCheckpoint("option context_gate", "None", ValueText(*gate));
}

// An option that names one of several values; `absent` where there is none.
template <class Value>
struct Choice {
  std::string_view name;
  Value value;
};
template <class Value, size_t N>
Result<Value> Choose(const PickleNode& options, std::string_view option,
                     const Choice<Value> (&choices)[N], Value absent) {
  const NodeRef found = PickledOption(options, option);
  if (found == nullptr) return absent;
  const auto* text = found->As<std::string>();
  std::string expected;
  for (const Choice<Value>& choice : choices) {
    if (text != nullptr && *text == choice.name) return choice.value;
    expected += (expected.empty() ? "" : " or ") + QuotedName(choice.name);
  }
  return RefuseCheckpoint("option " + std::string(option), expected, ValueText(*found));
}

// An option that is a truth or, in the training code's own files, the number 0 or 1.
Result<bool> ReadTruth(const PickleNode& options, std::string_view option, bool absent) {
  const NodeRef found = PickledOption(options, option);
  if (found == nullptr) return absent;
  if (const auto* truth = found->As<bool>()) return *truth;
  const auto* number = found->As<int64_t>();
  if (number != nullptr && (*number == 0 || *number == 1)) return *number == 1;
  return RefuseCheckpoint("option " + std::string(option), "0 or 1", ValueText(*found));
}

bool IsRecurrent(const PickleNode& options) {
  const NodeRef found = PickledOption(options, "encoder_type");
  const auto* type = found == nullptr ? nullptr : found->As<std::string>();
  return type != nullptr && (*type == "rnn" || *type == "brnn");
}

Result<OpenNmtRecurrent> ReadRecurrent(const PickleNode& options) {
  KINGLET_RETURN_IF_ERROR(CheckRecurrentOptions(options));
  using Score = std::optional<AttentionScore>;
  OpenNmtRecurrent recurrent;
  recurrent.both_directions = *PickledOption(options, "encoder_type")->As<std::string>() == "brnn";
  constexpr Choice<RecurrentCell> kCells[] = {{"LSTM", RecurrentCell::kLstm},
                                              {"GRU", RecurrentCell::kGru}};
  KINGLET_ASSIGN_OR_RETURN(recurrent.cell,
                           Choose(options, "rnn_type", kCells, RecurrentCell::kLstm));
  constexpr Choice<Score> kScores[] = {{"general", AttentionScore::kGeneral},
                                       {"dot", AttentionScore::kDot},
                                       {"mlp", AttentionScore::kMlp},
                                       {"none", std::nullopt}};
  KINGLET_ASSIGN_OR_RETURN(recurrent.attention, Choose(options, "global_attention", kScores,
                                                       Score(AttentionScore::kGeneral)));
  KINGLET_ASSIGN_OR_RETURN(recurrent.input_feed, ReadTruth(options, "input_feed", true));
  KINGLET_ASSIGN_OR_RETURN(recurrent.bridge, ReadTruth(options, "bridge", false));
  return recurrent;
}

Result<uint32_t> ReadHeads(const PickleNode& options) {
  const NodeRef found = PickledOption(options, "heads");
  const auto* heads = found == nullptr ? nullptr : found->As<int64_t>();
  if (heads == nullptr || *heads < 1 || *heads > static_cast<int64_t>(kMaxExtent)) {
    return RefuseCheckpoint("option heads", "1 to " + std::to_string(kMaxExtent),
                            found == nullptr ? "none" : ValueText(*found));
  }
  return static_cast<uint32_t>(*heads);
}

// The vocabulary of one side, "src" or "tgt": an entry of the dict `vocab`; in older files `vocab`
// is a list of pairs of side and vocabulary.
NodeRef SideOf(const PickleNode& vocabularies, std::string_view side) {
  const auto* pairs = vocabularies.As<PickleList>();
  if (pairs == nullptr) return vocabularies.Find(side);
  for (const PickleNode* pair : pairs->items) {
    std::string_view name;
    const NodeRef second = SecondOf(*pair, &name);
    if (second != nullptr && name == side) return second;
  }
  return nullptr;
}

// The list of words inside torchtext's objects: a Vocab has `itos`, a Field has a `vocab`, and a
// TextMultiField or a list has pairs of name and Field, of which all but the first are word
// features.
Result<std::vector<std::string>> ReadWords(const PickleNode& vocabularies, std::string_view side) {
  const std::string where = "vocab, " + std::string(side);
  NodeRef node = SideOf(vocabularies, side);
  constexpr int kDeepest = 4;
  for (int depth = 0; node != nullptr && depth < kDeepest; ++depth) {
    if (const NodeRef words = PickledOption(*node, "itos")) {
      const auto* list = words->As<PickleList>();
      if (list == nullptr)
        return RefuseCheckpoint(where, "a list of words as itos", words->Describe());
      std::vector<std::string> texts;
      texts.reserve(list->items.size());
      for (const PickleNode* item : list->items) {
        const auto* text = item->As<std::string>();
        if (text == nullptr) {
          return RefuseCheckpoint(where + ", word " + std::to_string(texts.size()), "text",
                                  item->Describe());
        }
        texts.push_back(*text);
      }
      return texts;
    }
    if (const NodeRef vocabulary = PickledOption(*node, "vocab")) {
      node = vocabulary;
      continue;
    }
    const NodeRef inside = PickledOption(*node, "fields");
    const auto* fields = (inside != nullptr ? inside : node)->As<PickleList>();
    if (fields == nullptr || fields->items.empty()) break;
    if (fields->items.size() > 1) {
      return RefuseCheckpoint(where, "words without features",
                              std::to_string(fields->items.size()) + " fields");
    }
    node = SecondOf(*fields->items[0]);
  }
  return RefuseCheckpoint(where, "a torchtext vocabulary",
                          node == nullptr ? "none" : node->Describe());
}

}  // namespace

Result<OpenNmtSettings> ReadOpenNmtSettings(const PickleNode& root) {
  const NodeRef options = root.Find("opt"), vocabularies = root.Find("vocab");
  if (options == nullptr || vocabularies == nullptr) {
    return RefuseCheckpoint("entries", "OpenNMT's 'opt' and 'vocab' beside 'model'",
                            options == nullptr ? "no 'opt'" : "no 'vocab'");
  }
  OpenNmtSettings settings;
  if (IsRecurrent(*options)) {
    KINGLET_ASSIGN_OR_RETURN(settings.recurrent, ReadRecurrent(*options));
  } else {
    KINGLET_RETURN_IF_ERROR(CheckTransformerOptions(*options));
    KINGLET_ASSIGN_OR_RETURN(settings.heads, ReadHeads(*options));
  }
  KINGLET_ASSIGN_OR_RETURN(settings.source_words, ReadWords(*vocabularies, "src"));
  KINGLET_ASSIGN_OR_RETURN(settings.target_words, ReadWords(*vocabularies, "tgt"));
  const auto& words = settings.target_words;
  const auto start = std::find(words.begin(), words.end(), "<s>");
  if (start == words.end())
    return RefuseCheckpoint("vocab, tgt", "a word <s>, which begins targets", "none");
  settings.start_token = static_cast<uint32_t>(start - words.begin());
  return settings;
}

}  // namespace kinglet
