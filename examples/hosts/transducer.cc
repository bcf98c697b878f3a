// The modified beam search of transducers with a language model in it: shallow fusion and LODR.
// transducer.py has the same search in Python, and writes frames.
//
//   transducer MODEL.kgl FRAMES.txt BEAM WEIGHT [BIGRAMS.kng BIGRAM_WEIGHT] [--one-by-one]
//
// Prints the hypotheses that are left after the last frame, the best one first: score and tokens.
// A line of FRAMES.txt has the likely symbols of a frame with their logits; 0 is the blank.
//
//   c++ -std=c++17 transducer.cc -o transducer $(pkg-config --cflags --libs kinglet)
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <kinglet/kinglet.hpp>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr uint32_t kBlank = 0;
// A token with this logit is heard. If it was the last of a hypothesis, it and what it may be
// mistaken for were emitted: the made-up joiner takes so much away.
constexpr double kHeard = 6, kEmitted = 8;

using Tokens = std::vector<uint32_t>;
using Symbols = std::vector<std::pair<uint32_t, double>>;

struct Weights {
  double network = 1, bigrams = 0;
};

// --- two ways to have a language model in the search. A state is what it knows of a hypothesis;
// Extend gives the weighted score of token ids[i] after states[i], and the state that follows.

// States are hypotheses of a kinglet::Beam, which are asked together, each once, if they grow.
class Arena {
 public:
  using State = std::shared_ptr<const uint64_t>;  // a reference to a hypothesis

  static kinglet::Result<Arena> Create(const kinglet::Model& model, const kinglet::Ngrams* bigrams,
                                       const Weights& weights) {
    KINGLET_ASSIGN_OR_RETURN(auto scorer, kinglet::Scorer::Create(model, weights.network));
    if (bigrams != nullptr) {
      KINGLET_RETURN_IF_ERROR(scorer.AddNgrams(*bigrams, KINGLET_NGRAMS_ADDED, weights.bigrams));
    }
    kinglet::BeamOptions options;
    options.scorer = scorer.get();
    KINGLET_ASSIGN_OR_RETURN(auto beam, kinglet::Beam::Create(model, options));
    return Arena(std::move(beam));
  }
  kinglet::Result<State> Begin(uint32_t token) {
    KINGLET_ASSIGN_OR_RETURN(const uint64_t empty, beam_->Begin());
    KINGLET_ASSIGN_OR_RETURN(const uint64_t begun, beam_->Step(empty, token));
    return Held(begun);
  }
  kinglet::Status Extend(const std::vector<State>& states, const Tokens& ids,
                         std::vector<double>& scores, std::vector<State>& after) {
    std::vector<uint64_t> numbers;
    for (const State& state : states) numbers.push_back(*state);
    KINGLET_ASSIGN_OR_RETURN(scores, beam_->LogProbability(numbers.data(), ids.data(), ids.size()));
    KINGLET_ASSIGN_OR_RETURN(const auto stepped,
                             beam_->Step(numbers.data(), ids.data(), ids.size()));
    for (const uint64_t number : stepped) after.push_back(Held(number));
    return {};
  }

 private:
  explicit Arena(kinglet::Beam beam) : beam_(std::make_shared<kinglet::Beam>(std::move(beam))) {}
  State Held(uint64_t number) const {
    return {new uint64_t(number), [beam = beam_](const uint64_t* held) {
              (void)beam->Drop({*held});
              delete held;
            }};
  }
  std::shared_ptr<kinglet::Beam> beam_;
};

// As sherpa-onnx does: each new hypothesis runs the network at once, alone, for all tokens, and has
// a state of its own.
class OneByOne {
 public:
  struct Copied {
    kinglet::State network;
    std::vector<float> scores;  // of every token
    kinglet_ngram_state bigrams;
  };
  using State = std::shared_ptr<const Copied>;

  static kinglet::Result<OneByOne> Create(const kinglet::Model& model,
                                          const kinglet::Ngrams* bigrams, const Weights& weights) {
    KINGLET_ASSIGN_OR_RETURN(auto session, kinglet::Session::Create(model));
    KINGLET_ASSIGN_OR_RETURN(auto words, model.TokenTexts());
    return OneByOne(std::move(session), std::move(words), bigrams, weights);
  }
  kinglet::Result<State> Begin(uint32_t token) {
    kinglet_ngram_state at = {};
    if (bigrams_ != nullptr) {
      KINGLET_ASSIGN_OR_RETURN(at, bigrams_->Begin());
    }
    return Stepped(token, at);
  }
  kinglet::Status Extend(const std::vector<State>& states, const Tokens& ids,
                         std::vector<double>& scores, std::vector<State>& after) {
    for (size_t i = 0; i < ids.size(); ++i) {
      kinglet_ngram_state at = states[i]->bigrams;
      scores.push_back(weights_.network * double{states[i]->scores[ids[i]]});
      if (bigrams_ != nullptr) {
        KINGLET_ASSIGN_OR_RETURN(const uint32_t word, bigrams_->Word(words_[ids[i]]));
        KINGLET_ASSIGN_OR_RETURN(const double value, bigrams_->Score(at, word));
        scores.back() += weights_.bigrams * value;
      }
      KINGLET_RETURN_IF_ERROR(session_.Restore(states[i]->network));
      KINGLET_ASSIGN_OR_RETURN(auto stepped, Stepped(ids[i], at));
      after.push_back(std::move(stepped));
    }
    return {};
  }

 private:
  OneByOne(kinglet::Session session, std::vector<std::string> words, const kinglet::Ngrams* bigrams,
           const Weights& weights)
      : session_(std::move(session)),
        words_(std::move(words)),
        bigrams_(bigrams),
        weights_(weights) {}
  kinglet::Result<State> Stepped(uint32_t token, const kinglet_ngram_state& at) {
    KINGLET_RETURN_IF_ERROR(session_.Step(token));
    KINGLET_ASSIGN_OR_RETURN(auto scores, session_.LogProbabilities());
    KINGLET_ASSIGN_OR_RETURN(auto network, session_.Save());
    return std::make_shared<const Copied>(Copied{std::move(network), std::move(scores), at});
  }
  kinglet::Session session_;
  std::vector<std::string> words_;
  const kinglet::Ngrams* bigrams_;
  Weights weights_;
};

// --- the search

// ln p of the symbols of a frame after the token `last`.
Symbols Joined(const Symbols& frame, uint32_t last) {
  Symbols joined = frame;
  const bool is_emitted = std::any_of(frame.begin(), frame.end(), [&](const auto& symbol) {
    return symbol.first == last && last != kBlank && symbol.second >= kHeard;
  });
  double sum = 0;
  for (auto& [id, logit] : joined) {
    if (is_emitted && id != kBlank && logit >= kHeard) logit -= kEmitted;
    sum += std::exp(logit);
  }
  for (auto& [id, logit] : joined) logit -= std::log(sum);
  return joined;
}

double LogOfSum(double a, double b) {
  return std::max(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
}

template <class State>
struct Hypothesis {
  Tokens tokens;
  double score;
  State state;
};

// The hypotheses of one frame more, at most `width`.
template <class Fusion>
kinglet::Status Advance(const Symbols& frame, size_t width, Fusion& fusion,
                        std::vector<Hypothesis<typename Fusion::State>>& found) {
  struct Pair {
    double score;
    size_t from;
    uint32_t id;
  };
  std::vector<Pair> pairs;
  for (size_t i = 0; i < found.size(); ++i) {
    const uint32_t last = found[i].tokens.empty() ? kBlank : found[i].tokens.back();
    for (const auto& [id, value] : Joined(frame, last)) {
      pairs.push_back({found[i].score + value, i, id});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.score > b.score; });
  pairs.resize(std::min(width, pairs.size()));

  std::vector<typename Fusion::State> states, after;
  std::vector<double> scores;
  Tokens ids;
  for (const Pair& pair : pairs) {
    if (pair.id == kBlank) continue;
    states.push_back(found[pair.from].state);
    ids.push_back(pair.id);
  }
  if (!ids.empty()) KINGLET_RETURN_IF_ERROR(fusion.Extend(states, ids, scores, after));

  std::map<Tokens, Hypothesis<typename Fusion::State>> merged;
  size_t grown = 0;
  for (const Pair& pair : pairs) {
    auto next = found[pair.from];
    next.score = pair.score;
    if (pair.id != kBlank) {
      next.tokens.push_back(pair.id);
      next.score += scores[grown];
      next.state = after[grown++];
    }
    const auto [at, is_new] = merged.try_emplace(next.tokens, next);
    if (!is_new) at->second.score = LogOfSum(at->second.score, next.score);
  }
  found.clear();
  for (auto& [tokens, hypothesis] : merged) found.push_back(std::move(hypothesis));
  return {};
}

template <class Fusion>
kinglet::Status Search(const std::vector<Symbols>& frames, size_t width, uint32_t begin,
                       kinglet::Result<Fusion> created) {
  KINGLET_RETURN_IF_ERROR(created.status());
  Fusion fusion = std::move(created).value();
  KINGLET_ASSIGN_OR_RETURN(auto begun, fusion.Begin(begin));
  std::vector<Hypothesis<typename Fusion::State>> found = {{{}, 0, std::move(begun)}};
  for (const Symbols& frame : frames) {
    KINGLET_RETURN_IF_ERROR(Advance(frame, width, fusion, found));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  for (const auto& hypothesis : found) {
    std::printf("%.9g\t", hypothesis.score);
    for (const uint32_t id : hypothesis.tokens) std::printf("%u ", id);
    std::printf("\n");
  }
  return {};
}

std::vector<Symbols> ReadFrames(const char* path) {
  std::ifstream file(path);
  std::vector<Symbols> frames;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    Symbols& frame = frames.emplace_back();
    for (std::pair<uint32_t, double> symbol; fields >> symbol.first >> symbol.second;) {
      frame.push_back(symbol);
    }
  }
  if (frames.empty()) {
    std::fprintf(stderr, "transducer: %s: expected a line for each frame, found none\n", path);
    std::exit(1);
  }
  return frames;
}

double NumberOf(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

kinglet::Status Run(const std::vector<std::string>& arguments, bool one_by_one) {
  KINGLET_ASSIGN_OR_RETURN(const auto model, kinglet::Model::Open(arguments[0]));
  KINGLET_ASSIGN_OR_RETURN(const uint32_t begin, model.SpecialToken(KINGLET_TOKEN_BEGIN));
  const std::vector<Symbols> frames = ReadFrames(arguments[1].c_str());
  const auto width = static_cast<size_t>(std::max(1.0, NumberOf(arguments[2])));
  Weights weights{NumberOf(arguments[3]), 0};
  std::optional<kinglet::Ngrams> bigrams;
  if (arguments.size() == 6) {
    KINGLET_ASSIGN_OR_RETURN(bigrams, kinglet::Ngrams::Open(arguments[4]));
    weights.bigrams = NumberOf(arguments[5]);
  }
  const kinglet::Ngrams* const used = bigrams ? &*bigrams : nullptr;
  return one_by_one ? Search(frames, width, begin, OneByOne::Create(model, used, weights))
                    : Search(frames, width, begin, Arena::Create(model, used, weights));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool one_by_one = !arguments.empty() && arguments.back() == "--one-by-one";
  if (one_by_one) arguments.pop_back();
  if (arguments.size() != 4 && arguments.size() != 6) {
    std::fprintf(stderr,
                 "usage: transducer MODEL.kgl FRAMES.txt BEAM WEIGHT [BIGRAMS.kng BIGRAM_WEIGHT] "
                 "[--one-by-one]\n");
    return 2;
  }
  const kinglet::Status status = Run(arguments, one_by_one);
  if (!status.ok()) std::fprintf(stderr, "transducer: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
