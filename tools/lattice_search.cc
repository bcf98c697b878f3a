#include "tools/lattice_search.h"

#include <algorithm>
#include <map>
#include <numbers>
#include <numeric>
#include <utility>

#include "converters/texts/text_reader.h"
#include "runtime/beam.h"
#include "tools/words.h"

namespace kinglet {
namespace {

constexpr uint64_t kStateBytes = uint64_t{64} << 20;
constexpr uint32_t kNoText = UINT32_MAX;

// A reference to a hypothesis of a beam.
using HeldHypothesis = std::shared_ptr<const Beam::Hypothesis>;

HeldHypothesis Held(Beam& beam, Beam::Hypothesis hypothesis) {
  return {new Beam::Hypothesis(hypothesis), [&beam](const Beam::Hypothesis* held) {
            (void)beam.Drop({held, 1});
            delete held;
          }};
}

}  // namespace

// One lattice.
class LatticeRun {
 public:
  LatticeRun(LatticeSearch& search, const Lattice& lattice)
      : search_(search),
        lattice_(lattice),
        beam_(search.session_, kStateBytes),
        arrived_(lattice.arcs.size()),
        texts_(1, {kNoText, LatticeArc::kNoWord}) {}

  Result<HypothesisList> Run() {
    KINGLET_RETURN_IF_ERROR(Begin());
    for (const std::vector<uint32_t>& states : Levels()) {
      std::vector<Extension> extensions;
      for (const uint32_t state : states) {
        std::vector<Path> paths = Best(std::exchange(arrived_[state], {}),
                                       search_.options_.hypotheses, search_.options_.history);
        for (Path& path : paths) {
          for (const LatticeArc& arc : lattice_.arcs[state]) {
            KINGLET_RETURN_IF_ERROR(Follow(path, arc, extensions));
          }
          if (lattice_.ends[state]) End(path, *lattice_.ends[state], extensions);
        }
      }
      KINGLET_RETURN_IF_ERROR(Compute(extensions));
      for (Extension& extension : extensions) {
        (extension.to == kEnd ? ended_ : arrived_[extension.to])
            .push_back(std::move(extension.path));
      }
    }
    return Texts();
  }
  uint64_t stepped() const { return beam_.stepped(); }

 private:
  static constexpr uint32_t kEnd = UINT32_MAX;  // in place of a state

  struct Path {
    HeldHypothesis held;
    ScoreParts parts;
    std::vector<NgramState> ngrams;
    Phrases::State phrases = Phrases::kNone;
    uint32_t text = 0;  // in texts_
  };
  // A path and the tokens that follow it.
  struct Extension {
    Path path;
    uint32_t to;
    const LatticeSearch::Word* word;
  };

  double ScoreOf(const Path& path) const { return WeightedScore(search_.weights_, path.parts); }

  // The hypothesis before the first word.
  Status Begin() {
    KINGLET_ASSIGN_OR_RETURN(const Beam::Hypothesis root, beam_.Begin());
    const HeldHypothesis held = Held(beam_, root);
    Beam::Hypothesis first = 0;
    KINGLET_RETURN_IF_ERROR(beam_.Step({&root, 1}, {&*search_.frame_.begin, 1}, {&first, 1}));
    Path path = {Held(beam_, first), {}, {}};
    path.parts.ngrams.resize(search_.weights_.ngrams.size());
    for (const auto& ngram : search_.ngrams_) {
      path.ngrams.push_back(ngram->SentenceBegin());
      end_.ngrams.push_back({ngram->end_word()});
    }
    end_.is_end = true;
    end_.inputs = end_.targets = {*search_.frame_.end};
    arrived_[0].push_back(std::move(path));
    return {};
  }

  // The states by the most arcs on a path to them, so that those of a level are independent.
  std::vector<std::vector<uint32_t>> Levels() const {
    std::vector<size_t> level_of(lattice_.arcs.size());
    std::vector<std::vector<uint32_t>> levels;
    for (const uint32_t state : lattice_.order) {
      if (level_of[state] >= levels.size()) levels.resize(level_of[state] + 1);
      levels[level_of[state]].push_back(state);
      for (const LatticeArc& arc : lattice_.arcs[state]) {
        level_of[arc.to] = std::max(level_of[arc.to], level_of[state] + 1);
      }
    }
    return levels;
  }

  // The best path of each text, of those with the same last words the best, and of these the best,
  // best first.
  std::vector<Path> Best(std::vector<Path> paths, size_t most, uint32_t history) const {
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < paths.size(); ++i) order.emplace_back(ScoreOf(paths[i]), i);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<Path> best;
    std::map<std::vector<uint32_t>, size_t> of_history;
    std::map<uint32_t, bool> is_there;
    for (const auto& [score, index] : order) {
      if (best.size() == most) break;
      Path& path = paths[index];
      if (std::exchange(is_there[path.text], true)) continue;
      if (of_history[LastWords(path.text, history)]++ >= search_.options_.texts) continue;
      best.push_back(std::move(path));
    }
    return best;
  }

  std::vector<uint32_t> LastWords(uint32_t text, uint32_t most) const {
    std::vector<uint32_t> words;
    for (; words.size() < most && texts_[text].first != kNoText; text = texts_[text].first) {
      words.push_back(texts_[text].second);
    }
    return words;
  }

  void AddCost(const LatticeCost& cost, Path& path) const {
    path.parts.given -= cost.graph + search_.options_.acoustic_scale * cost.acoustic;
  }

  Status Follow(const Path& path, const LatticeArc& arc, std::vector<Extension>& extensions) {
    Path next = path;
    AddCost(arc.cost, next);
    if (arc.word == LatticeArc::kNoWord) {
      arrived_[arc.to].push_back(std::move(next));
      return {};
    }
    KINGLET_ASSIGN_OR_RETURN(const LatticeSearch::Word* const word,
                             search_.WordOf(lattice_.words[arc.word]));
    const auto [text, is_new] = text_of_.try_emplace({path.text, arc.word}, texts_.size());
    if (is_new) texts_.emplace_back(path.text, arc.word);
    next.text = text->second;
    extensions.push_back({std::move(next), arc.to, word});
    return {};
  }

  void End(const Path& path, const LatticeCost& cost, std::vector<Extension>& extensions) const {
    Path next = path;
    AddCost(cost, next);
    extensions.push_back({std::move(next), kEnd, &end_});
  }

  // Adds the words' scores: token by token, those of all extensions together.
  Status Compute(std::vector<Extension>& extensions) {
    for (Extension& extension : extensions) {
      Path& path = extension.path;
      path.parts.tokens += static_cast<double>(extension.word->targets.size());
      path.parts.unknown += static_cast<double>(extension.word->unknown);
      AddNgrams(*extension.word, path);
      const Phrases& phrases = search_.phrases_.phrases();
      const Phrases::Step step = extension.word->is_end
                                     ? Phrases::Step{Phrases::kNone, phrases.End(path.phrases)}
                                     : phrases.Next(path.phrases, extension.word->phrase);
      path.phrases = step.after;
      path.parts.context += step.bonus;
    }
    KINGLET_RETURN_IF_ERROR(AskNetwork(extensions));
    // A word's own log-probability, mixed, is added to that of the text before.
    for (Extension& extension : extensions) {
      ScoreParts& parts = extension.path.parts;
      const double before = parts.logprob;
      parts.logprob = std::accumulate(parts.words.begin(), parts.words.end(), 0.0);
      MixWords(search_.weights_.shares, parts);
      parts.logprob += before;
    }
    return {};
  }

  // Numbers of ScoreParts::words for a word or, of n-grams of tokens, for a token.
  size_t Each() const { return 1 + search_.weights_.shares.size(); }

  void AddNgrams(const LatticeSearch::Word& word, Path& path) const {
    const size_t units = search_.token_words_.empty() ? 1 : word.targets.size();
    path.parts.words.assign(units * Each(), 0);
    const size_t added = path.parts.ngrams.size();
    for (size_t i = 0; i < path.ngrams.size(); ++i) {
      NgramState& state = path.ngrams[i];
      for (size_t unit = 0; unit < word.ngrams[i].size(); ++unit) {
        const NgramScore score = search_.ngrams_[i]->Score(state, word.ngrams[i][unit], state);
        const double log = score.log10 * std::numbers::ln10;
        if (i < added) {
          path.parts.ngrams[i] += log;
        } else {
          path.parts.words[unit * Each() + 1 + i - added] = log;
        }
      }
    }
  }

  // Adds up the log-probabilities of each extension's tokens as the first of its word's.
  Status AskNetwork(std::vector<Extension>& extensions) {
    for (size_t at = 0;; ++at) {
      std::vector<Extension*> open;
      std::vector<Beam::Hypothesis> hypotheses;
      std::vector<uint32_t> inputs, targets;
      for (Extension& extension : extensions) {
        if (at >= extension.word->targets.size()) continue;
        open.push_back(&extension);
        hypotheses.push_back(*extension.path.held);
        inputs.push_back(extension.word->inputs[at]);
        targets.push_back(extension.word->targets[at]);
      }
      if (open.empty()) return {};
      std::vector<double> values(open.size());
      KINGLET_RETURN_IF_ERROR(beam_.LogProbabilities(hypotheses, targets, values));
      std::vector<Beam::Hypothesis> next(open.size());
      KINGLET_RETURN_IF_ERROR(beam_.Step(hypotheses, inputs, next));
      const size_t of_token = search_.token_words_.empty() ? 0 : at * Each();
      for (size_t i = 0; i < open.size(); ++i) {
        open[i]->path.parts.words[of_token] += values[i];
        open[i]->path.held = Held(beam_, next[i]);
      }
    }
  }

  HypothesisList Texts() const {
    HypothesisList list = {lattice_.utterance, {}};
    for (const Path& path : Best(ended_, search_.options_.texts, kNoText)) {
      std::vector<uint32_t> words = LastWords(path.text, kNoText);
      std::string text;
      for (auto word = words.rbegin(); word != words.rend(); ++word) {
        text += (text.empty() ? "" : " ") + lattice_.words[*word];
      }
      list.hypotheses.push_back({list.hypotheses.size() + 1, path.parts.given, std::move(text)});
    }
    return list;
  }

  LatticeSearch& search_;
  const Lattice& lattice_;
  Beam beam_;  // outlives the paths
  std::vector<std::vector<Path>> arrived_;
  std::vector<Path> ended_;
  // A text is another one and a word after it; 0 is the empty one.
  std::vector<std::pair<uint32_t, uint32_t>> texts_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> text_of_;
  LatticeSearch::Word end_;
};

Result<HypothesisList> LatticeSearch::Run(const Lattice& lattice) {
  if (lattice.arcs.empty()) return HypothesisList{lattice.utterance, {}};
  KINGLET_RETURN_IF_ERROR(CheckWordsApart(lattice));
  LatticeRun run(*this, lattice);
  Result<HypothesisList> list = run.Run();
  stepped_ += run.stepped();
  return list;
}

Result<LatticeSearch::Word> LatticeSearch::Tokenized(const std::string& text) const {
  const Model& model = session_.model();
  TokenSequence sequence;
  TextReader reader(*model.text(), "lattice: " + text, {}, PieceMarks());
  KINGLET_RETURN_IF_ERROR(reader.AddLine(text, sequence));
  Word word;
  word.targets = sequence.ids;
  KINGLET_ASSIGN_OR_RETURN(word.inputs, InputsOf(model, sequence));
  for (const uint32_t id : word.targets) word.unknown += id == unknown_ ? 1 : 0;
  for (size_t i = 0; i < ngrams_.size(); ++i) {
    std::vector<uint32_t>& units = word.ngrams.emplace_back();
    if (token_words_.empty()) units.push_back(ngrams_[i]->IdOf(text));
    for (const uint32_t id : word.targets) {
      if (!token_words_.empty()) units.push_back(token_words_[i][id]);
    }
  }
  word.phrase = phrases_.Number(text);
  return word;
}

Result<const LatticeSearch::Word*> LatticeSearch::WordOf(const std::string& text) {
  const auto known = words_.find(text);
  if (known != words_.end()) return &known->second;
  KINGLET_ASSIGN_OR_RETURN(Word word, Tokenized(text));
  return &words_.emplace(text, std::move(word)).first->second;
}

// Paths share words, so each word's tokens must not depend on its neighbours.
Status LatticeSearch::CheckWordsApart(const Lattice& lattice) {
  if (lattice.words.size() < 2) return {};
  const std::string &first = lattice.words[0], &second = lattice.words[1];
  KINGLET_ASSIGN_OR_RETURN(const Word* const a, WordOf(first));
  KINGLET_ASSIGN_OR_RETURN(const Word* const b, WordOf(second));
  KINGLET_ASSIGN_OR_RETURN(const Word both, Tokenized(first + " " + second));
  std::vector<uint32_t> apart = a->targets;
  apart.insert(apart.end(), b->targets.begin(), b->targets.end());
  if (apart == both.targets) return {};
  return Status::Refusal(KINGLET_UNSUPPORTED, "rescore", "lattice " + lattice.utterance,
                         "a model that reads forward, of words or of pieces of words",
                         "one that reads \"" + first + " " + second +
                             "\" unlike its words (give lists of hypotheses)");
}

}  // namespace kinglet
