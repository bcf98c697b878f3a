#include "runtime/text_prefix.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "format/blocks.h"
#include "format/utf8.h"
#include "kernels/functions.h"

namespace kinglet {
namespace {

bool BeginsWithSpace(std::string_view text) {
  return !text.empty() && (text.front() == ' ' || (text.front() >= '\t' && text.front() <= '\r'));
}

uint64_t SumUpToMost(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max()
                                                      : a + b;
}
uint64_t ProductUpToMost(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<uint64_t>::max() : product;
}

}  // namespace

Result<TextPrefix> TextPrefix::Create(const Model& model) {
  if (HasEncoder(model.file().description())) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "session", "text", "a language model",
                           "one with an encoder");
  }
  KINGLET_ASSIGN_OR_RETURN(Spellings spellings, Spellings::Of(model));
  return TextPrefix(std::make_shared<const Spellings>(std::move(spellings)));
}

Result<Session*> TextPrefix::StreamsFor(Session& session, uint32_t lane, uint32_t lanes) {
  if (streams_ == nullptr || streams_->lanes() < lanes) {
    streams_.reset();  // frees its memory first
    KINGLET_ASSIGN_OR_RETURN(streams_, session.CreateAlike(lanes));
  }
  KINGLET_ASSIGN_OR_RETURN(const State state, session.Save(lane));
  KINGLET_RETURN_IF_ERROR(streams_->Restore(state, 0));
  return streams_.get();
}

// Visits every sequence of pieces that spells a beginning of the prefix, depth first, with a stream
// for each depth.
class TextPrefix::Walk {
 public:
  // The end of a sequence of pieces: its stream, the bytes of the prefix that it spells, and the
  // context of the next token.
  struct Node {
    Session& session;
    uint32_t lane;
    size_t at;
    Before before;
  };
  // Probabilities by what follows the prefix.
  using Totals = std::map<std::string, double>;
  // Gives the totals of the tokens after a node that lead to no other node.
  using Visitor = std::function<Result<Totals>(const Node&)>;

  // With `to_the_end` the walk also visits sequences that spell the complete prefix.
  Walk(TextPrefix& texts, std::string_view prefix, bool to_the_end)
      : texts_(texts), prefix_(prefix), to_the_end_(to_the_end) {}

  // The totals of the prefix. A node's totals are those of the visitor and, added in the order of
  // ids, the probability of each token that leads to another node times that node's totals.
  Result<Totals> Run(Session& session, uint32_t lane, uint64_t most_steps, const Visitor& visit) {
    texts_.steps_ = 0;
    visit_ = &visit;
    asked_ = &session;
    asked_lane_ = lane;
    const Before before = texts_.spellings_->After(session.last_token(lane));
    KINGLET_RETURN_IF_ERROR(Plan(before, most_steps));
    return Visit({session, lane, 0, before}, 0);
  }
  // The tokens that reach the prefix's end from a node. REQUIRES: node.at < prefix size.
  std::vector<uint32_t> Whole(const Node& node) const {
    return texts_.spellings_->Of(prefix_.substr(node.at), node.before).whole;
  }
  std::string_view Rest(const Node& node) const { return prefix_.substr(node.at); }

 private:
  // The most pieces of a sequence, because each has a stream.
  static constexpr uint32_t kMostPieces = 1024;
  static constexpr size_t kStandings = 3;  // values of Before

  // A position in the prefix and the context there, with facts about the sequences from there to
  // the prefix's end.
  struct Place {
    uint64_t steps = 0;    // tokens of all these sequences together
    uint32_t pieces = 0;   // pieces of the longest sequence
    bool reached = false;  // whether a sequence from the prefix's beginning leads here
    bool ends = false;     // whether a sequence from here leads to the prefix's end
  };
  Place& PlaceAt(size_t at, Before before) {
    return places_[at * kStandings + static_cast<size_t>(before)];
  }
  Place& PlaceAfter(size_t at, const Spellings::Part& part) {
    return PlaceAt(at + part.length, texts_.spellings_->After(part.id));
  }

  // The tokens that lead to another place, in the order of ids, and whether a token reaches the
  // prefix's end.
  struct Follow {
    std::vector<Spellings::Part> parts;
    bool reaches_end;
  };
  Follow From(size_t at, Before before) const {
    Spellings::Beginnings found = texts_.spellings_->Of(prefix_.substr(at), before);
    const bool reaches_end = at == prefix_.size() || !found.whole.empty();
    if (!to_the_end_) return {std::move(found.parts), reaches_end};
    for (const uint32_t id : found.whole) {
      const size_t length = texts_.spellings_->Text(id, before).size();
      if (at + length == prefix_.size()) {
        found.parts.push_back({id, static_cast<uint32_t>(length)});
      }
    }
    std::sort(found.parts.begin(), found.parts.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    return {std::move(found.parts), reaches_end};
  }

  static Status RefuseSteps(const std::string& expected, const std::string& found) {
    return Status::Refusal(KINGLET_TOO_MANY_STEPS, "session", "text prefix", expected, found);
  }
  static Status RefusePieces(const std::string& found) {
    return RefuseSteps("a text of at most " + std::to_string(kMostPieces) + " pieces", found);
  }
  Status ClaimMemory(uint64_t bytes) {
    const std::shared_ptr<MemoryBudget>& budget = asked_->model().budget();
    if (budget->Claim(bytes)) {
      memory_ = MemoryClaim(budget, bytes);
      return Status();
    }
    return Status::Refusal(
        KINGLET_OUT_OF_MEMORY, "session", "text prefix",
        "at most " + std::to_string(budget->left()) + " bytes, which the memory limit leaves",
        std::to_string(bytes) + " for a prefix of " + std::to_string(prefix_.size()));
  }

  // The number of tokens that lead from a place to one other place.
  struct Way {
    uint32_t length, tokens;
    Before before;
  };
  // The ways from a place, the longest last.
  std::vector<Way> WaysFrom(size_t at, Before before, bool& reaches_end) const {
    const Follow follow = From(at, before);
    reaches_end = follow.reaches_end;
    std::vector<Way> ways;
    ways.reserve(follow.parts.size());
    for (const Spellings::Part& part : follow.parts) {
      ways.push_back({part.length, 1, texts_.spellings_->After(part.id)});
    }
    const auto place = [](const Way& way) { return std::pair(way.length, way.before); };
    std::sort(ways.begin(), ways.end(),
              [&](const Way& a, const Way& b) { return place(a) < place(b); });
    size_t kept = 0;
    for (size_t i = 0; i < ways.size(); ++i) {
      if (i > 0 && place(ways[kept - 1]) == place(ways[i])) {
        ++ways[kept - 1].tokens;
      } else {
        ways[kept++] = ways[i];
      }
    }
    ways.resize(kept);
    return ways;
  }

  // Finds the places that are reached and what leads on from them, depth first. The longest way
  // comes first, so that places near the prefix's end are known soon: a sequence of one is a part
  // of a sequence of the beginning, so what is too much for one is too much.
  Status Plan(Before before, uint64_t most_steps) {
    if (prefix_.size() / kMostPieces > texts_.spellings_->longest()) {
      return RefusePieces(std::to_string(prefix_.size()) + " bytes");
    }
    // A place whose ways are not all followed, and where they begin among those that wait.
    struct Open {
      size_t at;
      Before before;
      size_t first;
    };
    // Open places follow each other in the prefix, two at a byte where a space is dropped. What
    // waits for one is no longer than the way to the next.
    const uint64_t bytes = uint64_t{prefix_.size()} + 1;
    constexpr uint64_t kAtAByte = 2;
    KINGLET_RETURN_IF_ERROR(ClaimMemory(
        bytes * (kStandings * (sizeof(Place) + kAtAByte * sizeof(Way)) + kAtAByte * sizeof(Open))));
    places_.resize(bytes * kStandings);
    std::vector<Way> waiting;
    std::vector<Open> open;
    waiting.reserve(bytes * kStandings * kAtAByte);
    open.reserve(bytes * kAtAByte);
    const auto enter = [&](size_t at, Before standing) {
      Place& here = PlaceAt(at, standing);
      here.reached = true;
      open.push_back({at, standing, waiting.size()});
      const std::vector<Way> ways = WaysFrom(at, standing, here.ends);
      waiting.insert(waiting.end(), ways.begin(), ways.end());
      return asked_->TakeCancellation("text prefix");
    };
    KINGLET_RETURN_IF_ERROR(enter(0, before));
    // What falls: the places that are not reached; then the ways that wait, and the open places.
    while (!open.empty()) {
      const Open from = open.back();
      if (waiting.size() == from.first) {
        open.pop_back();
        continue;
      }
      const Way way = waiting.back();
      const Place& next = PlaceAt(from.at + way.length, way.before);  // a later one
      if (!next.reached) {
        KINGLET_RETURN_IF_ERROR(enter(from.at + way.length, way.before));
        continue;
      }
      waiting.pop_back();
      if (!next.ends) continue;
      Place& here = PlaceAt(from.at, from.before);
      here.ends = true;
      here.pieces = std::max(here.pieces, next.pieces + 1);
      here.steps = SumUpToMost(here.steps, ProductUpToMost(way.tokens, SumUpToMost(next.steps, 1)));
      if (here.steps > most_steps) {
        return RefuseSteps("at most " + std::to_string(most_steps) +
                               " sequences of pieces that spell its beginnings",
                           "more");
      }
      if (here.pieces > kMostPieces) return RefusePieces("more");
    }
    return Status();
  }

  Result<Totals> Visit(const Node& node, uint32_t depth) {
    KINGLET_ASSIGN_OR_RETURN(Totals totals, (*visit_)(node));
    std::vector<Spellings::Part> parts = From(node.at, node.before).parts;
    std::erase_if(parts, [&](const auto& part) { return !PlaceAfter(node.at, part).ends; });
    if (parts.empty()) return totals;
    KINGLET_ASSIGN_OR_RETURN(const std::vector<double> probabilities, ProbabilitiesOf(parts, node));
    if (depth == 0) {
      const uint32_t depths = PlaceAt(node.at, node.before).pieces + 1;
      KINGLET_ASSIGN_OR_RETURN(streams_, texts_.StreamsFor(*asked_, asked_lane_, depths));
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      KINGLET_RETURN_IF_ERROR(asked_->TakeCancellation("text prefix"));
      KINGLET_RETURN_IF_ERROR(streams_->Fork(depth, depth + 1));
      KINGLET_RETURN_IF_ERROR(streams_->StepToken(parts[i].id, depth + 1));
      ++texts_.steps_;
      KINGLET_ASSIGN_OR_RETURN(const Totals after,
                               Visit({*streams_, depth + 1, node.at + parts[i].length,
                                      texts_.spellings_->After(parts[i].id)},
                                     depth + 1));
      for (const auto& [name, total] : after) totals[name] += probabilities[i] * total;
    }
    return totals;
  }
  static Result<std::vector<double>> ProbabilitiesOf(const std::vector<Spellings::Part>& parts,
                                                     const Node& node) {
    const uint32_t vocabulary = node.session.model().vocabulary_size();
    TokenSet set(vocabulary);
    std::vector<uint32_t> part_of(vocabulary);
    for (size_t i = 0; i < parts.size(); ++i) {
      set.Add(parts[i].id);
      part_of[parts[i].id] = static_cast<uint32_t>(i);
    }
    std::vector<double> probabilities(parts.size());
    KINGLET_RETURN_IF_ERROR(node.session.AddProbabilities(set, part_of, probabilities, node.lane));
    return probabilities;
  }

  TextPrefix& texts_;
  const std::string_view prefix_;
  const bool to_the_end_;
  MemoryClaim memory_;
  std::vector<Place> places_;  // [at * kStandings + before]
  const Visitor* visit_ = nullptr;
  Session* asked_ = nullptr;
  Session* streams_ = nullptr;
  uint32_t asked_lane_ = 0;
};

Result<double> TextPrefix::Probability(Session& session, uint32_t lane, std::string_view prefix,
                                       uint64_t most_steps) {
  KINGLET_RETURN_IF_ERROR(session.CheckHasToken(lane));
  steps_ = 0;
  if (prefix.empty()) return 1.0;
  Walk walk(*this, prefix, false);
  const auto own = [&](const Walk::Node& node) -> Result<Walk::Totals> {
    const TokenSet set(session.model().vocabulary_size(), walk.Whole(node));
    KINGLET_ASSIGN_OR_RETURN(const double p, node.session.ProbabilityOf(set, node.lane));
    return Walk::Totals{{"", p}};
  };
  KINGLET_ASSIGN_OR_RETURN(const Walk::Totals totals, walk.Run(session, lane, most_steps, own));
  return totals.at("");
}

Result<std::vector<NextCharacter>> TextPrefix::NextCharacters(Session& session, uint32_t lane,
                                                              std::string_view prefix,
                                                              uint64_t most_steps) {
  KINGLET_RETURN_IF_ERROR(session.CheckHasToken(lane));
  const uint32_t vocabulary = session.model().vocabulary_size();
  Walk walk(*this, prefix, true);
  const auto own = [&](const Walk::Node& node) -> Result<Walk::Totals> {
    // Tokens by the character with which they continue after the prefix.
    std::map<std::string, uint32_t> parts;
    std::vector<uint32_t> part_of(vocabulary);
    TokenSet set(vocabulary);
    const size_t rest = walk.Rest(node).size();
    const auto add = [&](uint32_t id) {
      const std::string text =
          spellings_->SpellsNothing(id) ? "" : spellings_->Text(id, node.before);
      // A token that spells exactly the rest leads to another node.
      if (text.size() == rest && (rest > 0 || !spellings_->SpellsNothing(id))) return;
      const std::string_view after = std::string_view(text).substr(rest);
      const std::string unit(after.substr(0, after.empty() ? 0 : UnitLength(after)));
      part_of[id] = parts.try_emplace(unit, static_cast<uint32_t>(parts.size())).first->second;
      set.Add(id);
    };
    if (rest == 0) {
      for (uint32_t id = 0; id < vocabulary; ++id) add(id);
    } else {
      for (const uint32_t id : walk.Whole(node)) add(id);
    }
    std::vector<double> of_parts(parts.size());
    KINGLET_RETURN_IF_ERROR(node.session.AddProbabilities(set, part_of, of_parts, node.lane));
    Walk::Totals totals;
    for (const auto& [unit, part] : parts) totals[unit] = of_parts[part];
    return totals;
  };
  KINGLET_ASSIGN_OR_RETURN(const Walk::Totals totals, walk.Run(session, lane, most_steps, own));
  std::vector<NextCharacter> characters;
  for (const auto& [unit, total] : totals) characters.push_back({unit, total});
  return characters;
}

// A beam search over beginnings of words, with a stream for each beginning.
class TextPrefix::Beam {
 public:
  Beam(TextPrefix& texts, std::string_view prefix, const CompletionOptions& options)
      : texts_(texts), prefix_(prefix), options_(options) {}

  Result<std::vector<TextCompletion>> Run(Session& session, uint32_t lane) {
    texts_.steps_ = 0;
    const uint32_t beam = options_.beam;
    std::vector<Beginning> live;
    live.push_back(
        {&session, lane, Spelled(), texts_.spellings_->After(session.last_token(lane)), 0.0});
    Session* streams = nullptr;
    for (uint32_t half = 0; !live.empty(); half = 1 - half) {
      std::vector<Extension> next;
      for (size_t i = 0; i < live.size(); ++i) {
        KINGLET_RETURN_IF_ERROR(session.TakeCancellation("best words"));
        KINGLET_RETURN_IF_ERROR(Extend(live[i], i, next));
      }
      Prune(next);
      next.resize(std::min(next.size(), static_cast<size_t>(options_.steps - texts_.steps_)));
      if (next.empty()) break;
      if (streams == nullptr) {
        KINGLET_ASSIGN_OR_RETURN(streams, texts_.StreamsFor(session, lane, 1 + 2 * beam));
        live.front().session = streams;
        live.front().lane = 0;
      }
      std::vector<Beginning> stepped;
      std::vector<uint32_t> lanes, ids;
      for (const Extension& extension : next) {
        const Beginning& from = live[extension.from];
        lanes.push_back(1 + half * beam + static_cast<uint32_t>(lanes.size()));
        ids.push_back(extension.id);
        KINGLET_RETURN_IF_ERROR(streams->Fork(from.lane, lanes.back()));
        stepped.push_back({streams, lanes.back(), extension.text,
                           texts_.spellings_->After(extension.id), extension.log_probability});
      }
      KINGLET_RETURN_IF_ERROR(streams->StepLanes(lanes, ids));
      texts_.steps_ += ids.size();
      live = std::move(stepped);
    }
    return Sorted();
  }

 private:
  // The text that pieces spell: the number of bytes of the prefix, and the bytes after the prefix.
  // Ordered by bytes.
  struct Spelled {
    size_t of_prefix = 0;
    std::string after;
    bool operator==(const Spelled&) const = default;
    bool operator<(const Spelled& other) const {
      return std::tie(of_prefix, after) < std::tie(other.of_prefix, other.after);
    }
  };
  Spelled With(const Spelled& spelled, const std::string& more) const {
    const size_t left = prefix_.size() - spelled.of_prefix;
    if (more.size() <= left) return {spelled.of_prefix + more.size(), spelled.after};
    return {prefix_.size(), spelled.after + more.substr(left)};
  }

  struct Beginning {
    Session* session;
    uint32_t lane;
    Spelled text;
    Before before;
    double log_probability;
  };
  struct Extension {
    size_t from;
    uint32_t id;
    Spelled text;
    double log_probability;
  };

  // The tokens that continue a word, and the tokens before which a word ends.
  struct WordParts {
    TokenSet continuing, ends;
  };
  const WordParts& PartsOf(Before before, uint32_t vocabulary) {
    const auto [found, is_new] =
        parts_.try_emplace(before, WordParts{TokenSet(vocabulary), TokenSet(vocabulary)});
    WordParts& parts = found->second;
    if (!is_new) return parts;
    const Spellings& spellings = *texts_.spellings_;
    for (uint32_t id = 0; id < vocabulary; ++id) {
      const bool ends = spellings.SpellsNothing(id) || BeginsWithSpace(spellings.Text(id, before));
      (ends ? parts.ends : parts.continuing).Add(id);
    }
    return parts;
  }

  // Adds the best pieces that continue a beginning to `next`, and the word that ends here to
  // words_.
  Status Extend(const Beginning& beginning, size_t index, std::vector<Extension>& next) {
    const Spellings& spellings = *texts_.spellings_;
    const uint32_t vocabulary = beginning.session->model().vocabulary_size();
    TokenSet continuing(vocabulary);
    if (beginning.text.of_prefix < prefix_.size()) {
      const auto found = spellings.Of(prefix_.substr(beginning.text.of_prefix), beginning.before);
      for (const Spellings::Part& part : found.parts) continuing.Add(part.id);
      for (const uint32_t id : found.whole) continuing.Add(id);
    } else {
      const WordParts& parts = PartsOf(beginning.before, vocabulary);
      continuing = parts.continuing;
      if (beginning.text != Spelled()) {
        KINGLET_ASSIGN_OR_RETURN(const double p,
                                 beginning.session->ProbabilityOf(parts.ends, beginning.lane));
        words_[beginning.text.after] += std::exp(beginning.log_probability) * p;
      } else {  // no prefix: any beginning, also of the next word, with its space
        for (uint32_t id = 0; id < vocabulary; ++id) {
          if (!spellings.SpellsNothing(id)) continuing.Add(id);
        }
      }
    }
    KINGLET_ASSIGN_OR_RETURN(const std::vector<Candidate> best,
                             beginning.session->TopKOf(continuing, options_.beam, beginning.lane));
    for (const Candidate& word : best) {
      next.push_back({index, word.id,
                      With(beginning.text, spellings.Text(word.id, beginning.before)),
                      beginning.log_probability + word.log_probability});
    }
    return Status();
  }

  // Keeps the best extensions, and of these only those that may still become one of the best words.
  void Prune(std::vector<Extension>& next) const {
    double least = -std::numeric_limits<double>::infinity();
    if (words_.size() >= options_.count) {
      std::vector<double> found;
      for (const auto& [text, p] : words_) found.push_back(p);
      const auto last = found.begin() + static_cast<std::ptrdiff_t>(options_.count - 1);
      std::nth_element(found.begin(), last, found.end(), std::greater<>());
      least = std::log(*last);
    }
    std::erase_if(next, [least](const Extension& e) { return !(e.log_probability > least); });
    std::sort(next.begin(), next.end(), [](const Extension& a, const Extension& b) {
      if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
      return a.text != b.text ? a.text < b.text : a.id < b.id;
    });
    next.resize(std::min<size_t>(next.size(), options_.beam));
  }

  std::vector<TextCompletion> Sorted() const {
    std::vector<TextCompletion> completions;
    for (const auto& [after, p] : words_) completions.push_back({after, std::log(p)});
    std::stable_sort(completions.begin(), completions.end(),
                     [](const TextCompletion& a, const TextCompletion& b) {
                       return a.log_probability > b.log_probability;
                     });
    completions.resize(std::min<size_t>(completions.size(), options_.count));
    for (TextCompletion& word : completions) word.text.insert(0, prefix_);
    return completions;
  }

  TextPrefix& texts_;
  const std::string_view prefix_;
  const CompletionOptions options_;
  std::map<std::string, double> words_;  // by what follows the prefix
  std::map<Before, WordParts> parts_;
};

Result<std::vector<TextCompletion>> TextPrefix::Best(Session& session, uint32_t lane,
                                                     std::string_view prefix,
                                                     const CompletionOptions& options) {
  constexpr uint32_t kMostBeam = 1024;
  if (options.beam == 0 || options.beam > kMostBeam) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "session", "beam",
                           "1 to " + std::to_string(kMostBeam), std::to_string(options.beam));
  }
  KINGLET_RETURN_IF_ERROR(session.CheckHasToken(lane));
  steps_ = 0;
  if (options.count == 0) return std::vector<TextCompletion>();
  return Beam(*this, prefix, options).Run(session, lane);
}

}  // namespace kinglet
