#include "runtime/typing/decoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kinglet::typing {
namespace {

// Contexts with one more word that are kept, 4 bytes for each word.
constexpr size_t kContextsKept = 3;

bool Precedes(const TypingCandidate& a, const TypingCandidate& b) {
  if (a.score() != b.score()) return a.score() > b.score();
  return a.text < b.text;
}

}  // namespace

TypingDecoder::TypingDecoder(std::shared_ptr<const TypingVocabulary> words)
    : words_(std::move(words)),
      user_(words_),
      by_id_(words_->model().vocabulary_size()),
      scores_(words_->trie().entries()),
      joining_(words_->joining_trie().entries()) {
  joining_.Finish();
  if (words_->pieces()) piece_search_.emplace(words_->pieces());
}

void TypingDecoder::SetBlocked(std::span<const std::string> words) {
  blocked_.clear();
  for (const std::string& word : words) blocked_.insert(PlainLetters(word));
  UpdateAllowed();
}

void TypingDecoder::SetAllowed(std::span<const std::string> words) {
  allowed_.clear();
  for (const std::string& word : words) allowed_.insert(PlainLetters(word));
  UpdateAllowed();
}

bool TypingDecoder::IsAllowed(const Letters& plain) const {
  return !blocked_.contains(plain) && (allowed_.empty() || allowed_.contains(plain));
}

void TypingDecoder::UpdateAllowed() {
  mixed_version_ = 0;
  is_left_out_.clear();
  if (blocked_.empty() && allowed_.empty()) return;
  const WordTrie& trie = words_->trie();
  is_left_out_.resize(trie.entries());
  for (uint32_t entry = 0; entry < trie.entries(); ++entry) {
    is_left_out_[entry] = !IsAllowed(PlainLetters(words_->Text(trie.value(entry))));
  }
}

void TypingDecoder::SetWeights(const TypingWeights& weights) {
  weights_ = weights;
  mixed_version_ = 0;
}

Status TypingDecoder::Predict(WordPredictor& predictor) {
  if (version_ != 0 && version_ == predictor.version()) return {};
  version_ = 0;
  KINGLET_RETURN_IF_ERROR(predictor.Next(by_id_));
  version_ = predictor.version();
  return {};
}

Status TypingDecoder::Prepare(WordPredictor& predictor) {
  return MixNext(predictor, mixed_before_);
}

TypingDecoder::Mix TypingDecoder::MixAfter(std::string_view before) const {
  const double user = weights_.user * user_.words().share();
  return {1 - user - weights_.spelling, user,
          user_.words().Probabilities(TextOf(LowerLetters(before)))};
}

void TypingDecoder::Score(const Mix& mix, EntryScores& out) const {
  const std::span<const uint32_t> ids = words_->trie().values();
  const std::span<float> scores = out.scores();
  const auto log_network = static_cast<float>(std::log(mix.network));
  for (size_t entry = 0; entry < ids.size(); ++entry) {
    scores[entry] = by_id_[ids[entry]] + log_network;
  }
  for (const auto& [entry, number] : user_.listed()) {
    if (mix.user == 0 || mix.p[number] == 0) continue;
    scores[entry] = static_cast<float>(
        std::log(std::exp(static_cast<double>(scores[entry])) + mix.user * mix.p[number]));
  }
  for (size_t entry = 0; entry < is_left_out_.size(); ++entry) {
    if (is_left_out_[entry]) scores[entry] = static_cast<float>(-kNever);
  }
}

Status TypingDecoder::MixNext(WordPredictor& predictor, const std::string& before) {
  const uint64_t context = predictor.version();
  if (context != 0 && mixed_context_ == context && mixed_version_ == user_.version() &&
      mixed_before_ == before) {
    return {};
  }
  mixed_context_ = mixed_version_ = 0;  // until all is there
  KINGLET_RETURN_IF_ERROR(Predict(predictor));
  mixed_before_ = before;
  user_.Update();
  after_.clear();
  first_words_.clear();
  const Mix mix = MixAfter(before);
  Score(mix, scores_);
  for (const uint32_t entry : words_->joining()) {
    scores_.scores()[entry] = static_cast<float>(-kNever);
  }
  scores_.Finish();
  const double unknown = words_->unknown() ? std::exp(double{by_id_[*words_->unknown()]}) : 0;
  log_unknown_ = std::log(mix.network * unknown + weights_.spelling);
  own_scores_ = EntryScores(user_.own().entries());
  for (uint32_t entry = 0; entry < user_.own().entries(); ++entry) {
    const uint32_t number = user_.own().value(entry);
    const double p = mix.user * mix.p[number] + std::exp(log_unknown_ + user_.own_shares()[entry]);
    const bool counts = IsAllowed(PlainLetters(user_.words().text(number)));
    own_scores_.scores()[entry] = static_cast<float>(counts ? std::log(p) : -kNever);
  }
  own_scores_.Finish();
  mixed_context_ = context;
  mixed_version_ = user_.version();
  return {};
}

Result<TypingParts> TypingDecoder::PartsOf(WordPredictor& predictor, std::string_view before,
                                           const std::string& word) {
  KINGLET_RETURN_IF_ERROR(Predict(predictor));
  TypingParts parts = {0, 0, 0};
  const Letters lower = LowerLetters(word);
  if (const auto entry = words_->EntryOf(word)) {
    parts.network = std::exp(double{by_id_[words_->trie().value(*entry)]});
  } else if (TextOf(lower) == word && !words_->IsListed(lower)) {
    parts.spelling = std::exp(words_->LogShareOfUnknown(lower));
    if (words_->unknown()) {
      parts.network = std::exp(double{by_id_[*words_->unknown()]}) * parts.spelling;
    }
  }
  const double share = user_.words().share();
  const auto number = user_.words().Find(word);
  const double own =
      number ? user_.words().Probabilities(TextOf(LowerLetters(before)))[*number] : 0;
  parts.user = share * own + (1 - share) * parts.network;
  return parts;
}

Result<const EntryScores*> TypingDecoder::ScoresAfter(WordPredictor& predictor, uint32_t id) {
  const auto place = std::find_if(after_.begin(), after_.end(),
                                  [id](const After& after) { return after.id == id; });
  if (place != after_.end()) return &place->scores;
  version_ = 0;
  KINGLET_RETURN_IF_ERROR(predictor.After({&id, 1}, by_id_));
  // More contexts than are kept take the last one's place, so that the others stay: one question
  // asks for up to kFirstWords of them, and the next question for nearly the same.
  if (after_.size() < kContextsKept) {
    after_.push_back({id, EntryScores(words_->trie().entries())});
  }
  EntryScores& made = after_.back().scores;
  after_.back().id = UINT32_MAX;  // until all scores are there
  Score(MixAfter(words_->Text(id)), made);
  std::vector<float> joining;
  for (const uint32_t entry : words_->joining()) joining.push_back(made[entry]);
  const auto space = static_cast<float>(costs_.errors().missing_space);
  for (float& score : made.scores()) score -= space;
  for (size_t i = 0; i < joining.size(); ++i) made.scores()[words_->joining()[i]] = joining[i];
  made.Finish();
  after_.back().id = id;
  return &made;
}

// One question.
class TypingDecoder::Search {
 public:
  Search(TypingDecoder& decoder, WordPredictor& predictor, const TypingQuestion& question)
      : decoder_(decoder), words_(*decoder.words_), predictor_(predictor), question_(question) {}

  Result<TypingAnswer> Run() {
    if (decoder_.piece_search_) return RunWithPieces();
    decoder_.costs_.Set(words_.trie(), question_.touches, question_.errors);
    decoder_.joining_costs_.Set(words_.joining_trie(), question_.touches, question_.errors);
    decoder_.joining_costs_.TakeBounds(decoder_.costs_);
    OfferTyped();
    OfferWords();
    OfferUserWords();
    KINGLET_RETURN_IF_ERROR(cancelled_);
    if (!was_stopped_) KINGLET_RETURN_IF_ERROR(OfferTwoWords());
    KINGLET_RETURN_IF_ERROR(cancelled_);
    return TypingAnswer{std::move(best_), !was_stopped_};
  }

 private:
  size_t touches() const { return question_.touches.count(); }
  // A bound of the score that a candidate must reach; sums of the same numbers differ by roundings.
  double Floor() const {
    constexpr double kRoundings = 1e-9;
    if (best_.empty()) return -kNever;
    const double last = best_.size() < question_.count ? -kNever : best_.back().score();
    return std::max(last, best_.front().score() - question_.margin) - kRoundings;
  }

  void Offer(TypingCandidate candidate) {
    const auto alike = std::find_if(best_.begin(), best_.end(), [&](const TypingCandidate& other) {
      return other.text == candidate.text;
    });
    if (alike != best_.end()) {
      if (!Precedes(candidate, *alike)) return;
      best_.erase(alike);
    }
    best_.insert(std::upper_bound(best_.begin(), best_.end(), candidate, Precedes),
                 std::move(candidate));
    while (best_.size() > question_.count ||
           best_.back().score() < best_.front().score() - question_.margin) {
      best_.pop_back();
    }
  }

  std::string Written(uint32_t entry) const {
    return WithCapitals(words_.Text(words_.trie().value(entry)), question_.capitals);
  }
  // The question about the words of some touches.
  WordQuestion Question(size_t first, size_t last, bool is_finished, Capitals capitals) const {
    WordQuestion question = {first, last, is_finished, question_.count};
    if (capitals != Capitals::kAsWritten) {
      question.alike = [this](uint32_t a, uint32_t b) { return Written(a) == Written(b); };
    }
    return question;
  }
  std::vector<FoundWord> Find(const EntryScores& scores, const WordQuestion& question) {
    return FindIn(words_.trie(), scores, decoder_.costs_, question);
  }
  std::vector<FoundWord> FindIn(const WordTrie& trie, const EntryScores& scores,
                                const TouchCosts& costs, const WordQuestion& question) {
    return decoder_.search_.Find(
        trie, scores, costs, question, [this] { return Stops(); }, was_stopped_);
  }
  bool Stops() {
    if (cancelled_.ok()) cancelled_ = predictor_.TakeCancellation();
    return !cancelled_.ok() ||
           (question_.deadline && std::chrono::steady_clock::now() >= *question_.deadline);
  }

  // The cheapest character of each touch, and their cost; no letters if a touch has none.
  Letters TypedLetters(double& cost) const {
    Letters letters;
    cost = 0;
    for (size_t touch = 0; touch < touches(); ++touch) {
      const auto touched = question_.touches.at(touch);
      if (touched.empty()) return {};
      const auto cheapest = std::min_element(
          touched.begin(), touched.end(),
          [](const TouchedCharacter& a, const TouchedCharacter& b) { return a.cost < b.cost; });
      letters += cheapest->character;
      cost += cheapest->cost;
    }
    return cost == kNever ? Letters() : letters;
  }

  void OfferTyped() {
    double cost = 0;
    const Letters letters = TypedLetters(cost);
    if (letters.empty()) return;
    const std::string text = TextOf(letters);
    const Letters lower = LowerLetters(text);
    if (words_.IsListed(lower)) return;
    if (!decoder_.IsAllowed(PlainLetters(text))) return;
    const double log_probability = decoder_.log_unknown_ + words_.LogShareOfUnknown(lower);
    if (log_probability == -kNever || question_.count == 0) return;
    Offer({WithCapitals(text, question_.capitals),
           log_probability,
           cost,
           TypingCandidate::Kind::kTyped,
           {words_.unknown().value_or(0), 0}});
  }

  void OfferWords() {
    WordQuestion question = Question(0, touches(), question_.is_finished, question_.capitals);
    question.lowest = Floor();
    question.margin = question_.margin;
    for (const FoundWord& word : Find(decoder_.scores_, question)) {
      Offer({Written(word.entry),
             static_cast<double>(decoder_.scores_[word.entry]),
             word.cost,
             TypingCandidate::Kind::kWord,
             {words_.trie().value(word.entry), 0}});
    }
  }

  void OfferUserWords() {
    const WordTrie& own = decoder_.user_.own();
    if (was_stopped_ || own.entries() == 0) return;
    decoder_.own_costs_.Set(own, question_.touches, question_.errors);
    WordQuestion question = Question(0, touches(), question_.is_finished, Capitals::kAsWritten);
    question.lowest = Floor();
    const auto written = [&](uint32_t entry) {
      return WithCapitals(decoder_.user_.words().text(own.value(entry)), question_.capitals);
    };
    if (question_.capitals != Capitals::kAsWritten) {
      question.alike = [&](uint32_t a, uint32_t b) { return written(a) == written(b); };
    }
    for (const FoundWord& word : FindIn(own, decoder_.own_scores_, decoder_.own_costs_, question)) {
      Offer({written(word.entry),
             static_cast<double>(decoder_.own_scores_[word.entry]),
             word.cost,
             TypingCandidate::Kind::kUserWord,
             {words_.unknown().value_or(0), 0}});
    }
  }

  // --- of a model of pieces

  Result<TypingAnswer> RunWithPieces() {
    KINGLET_RETURN_IF_ERROR(decoder_.Predict(predictor_));
    mix_ = decoder_.MixAfter(question_.before);
    const PredictPieces predict = [this](std::span<const uint32_t> ids, std::span<float> out) {
      return Pieces(ids, out);
    };
    const auto offer = [this](const FoundPieces& found) {
      OfferPieces(found, TypingCandidate::Kind::kWord);
    };
    KINGLET_RETURN_IF_ERROR(decoder_.piece_search_->Find(
        question_.touches, question_.errors, question_.is_finished, predict,
        [this] { return Floor(); }, offer, [this] { return Stops(); }, was_stopped_));
    KINGLET_RETURN_IF_ERROR(cancelled_);
    if (!was_stopped_) KINGLET_RETURN_IF_ERROR(OfferTypedPieces());
    OfferUserWords();
    KINGLET_RETURN_IF_ERROR(cancelled_);
    return TypingAnswer{std::move(best_), !was_stopped_};
  }

  Status Pieces(std::span<const uint32_t> ids, std::span<float> out) {
    if (!ids.empty()) return predictor_.After(ids, out);
    std::copy(decoder_.by_id_.begin(), decoder_.by_id_.end(), out.begin());
    return {};
  }

  void OfferPieces(const FoundPieces& found, TypingCandidate::Kind kind) {
    if (question_.count == 0 || !decoder_.IsAllowed(PlainLetters(found.text))) return;
    double p = mix_.network * std::exp(found.log_probability);
    if (const auto number = decoder_.user_.words().Find(found.text))
      p += mix_.user * mix_.p[*number];
    Offer({WithCapitals(found.text, question_.capitals), std::log(p), found.cost, kind, {0, 0}});
  }

  // The typed letters, as the tokenizer splits them.
  Status OfferTypedPieces() {
    double cost = 0;
    const std::string text = TextOf(TypedLetters(cost));
    if (text.empty() || -cost < Floor()) return {};
    const ModelText& model_text = *words_.model().text();
    const bool has_space = !model_text.tokenizer().drops_first_space();
    KINGLET_ASSIGN_OR_RETURN(const TokenizedText tokens,
                             model_text.Encode((has_space ? " " : "") + text));
    std::vector<uint32_t> ids;
    for (const auto& token : tokens.tokens) ids.push_back(token.id);
    KINGLET_ASSIGN_OR_RETURN(const double log_probability,
                             decoder_.piece_search_->LogProbability(
                                 ids, [this](auto of, auto out) { return Pieces(of, out); }));
    OfferPieces({text, log_probability, cost}, TypingCandidate::Kind::kTyped);
    return {};
  }

  // --- two words

  // The best that second words from `split` on may add to a score of at least `lowest`: exact for
  // words that join, whose probability is at most 1; for others the estimate of kEstimate.
  double SecondPart(size_t split, double lowest) {
    double best = -kNever;
    WordQuestion question = Question(split, touches(), question_.is_finished, Capitals::kAsWritten);
    question.count = 1;
    question.lowest = lowest;
    if (!words_.joining().empty()) {
      for (const FoundWord& word :
           FindIn(words_.joining_trie(), decoder_.joining_, decoder_.joining_costs_, question)) {
        best = word.score;
      }
      if (was_stopped_) return best;
    }
    if (question_.errors.missing_space == kNever) return best;
    const double more = kEstimate - question_.errors.missing_space;
    question.lowest = std::max(best, lowest) - more;
    for (const FoundWord& word : Find(decoder_.scores_, question)) {
      best = std::max(best, std::min(word.score + more, -question_.errors.missing_space));
    }
    return best;
  }

  // The best words of at least `lowest` that end after `split` touches. Those of the last question
  // are kept while its touches are the beginning of this one's. What needs lower ones later is a
  // text that no word explains: then all words are found, so that it happens once.
  const std::vector<FoundWord>& FirstWords(size_t split, double lowest) {
    std::vector<KeptWords>& kept = decoder_.first_words_;
    if (split < kept.size() && kept[split].lowest <= lowest) return kept[split].words;
    WordQuestion question = Question(0, split, true, question_.capitals);
    question.count = kFirstWords;
    question.margin = kNear;
    question.lowest = split < kept.size() ? -kNever : lowest - kSpare;
    KeptWords found = {question.lowest, Find(decoder_.scores_, question)};
    if (split == kept.size()) kept.emplace_back();
    kept[split] = std::move(found);
    return kept[split].words;
  }

  // Best first words first.
  Status OfferTwoWords() {
    struct First {
      double estimate;
      size_t split;
      FoundWord word;
    };
    if (question_.count == 0 || decoder_.costs_.is_impossible()) return {};
    const double space = !words_.joining().empty() ? 0 : question_.errors.missing_space;
    if (space == kNever) return {};
    const double lowest =
        best_.empty() ? -kNever : std::max(Floor(), best_.front().score() - kNear);
    std::vector<First> firsts;
    for (size_t split = 1; split < touches(); ++split) {
      // What the second word costs at least.
      const double least = decoder_.costs_.Rest(split, touches()) + space;
      const std::vector<FoundWord>& words = FirstWords(split, lowest + least);
      if (was_stopped_) {
        decoder_.first_words_.resize(split);
        return {};
      }
      if (words.empty() || words[0].score - least < lowest) continue;
      const double second = SecondPart(split, lowest - words[0].score);
      for (const FoundWord& word : words) {
        if (word.score - least < lowest) break;
        const double estimate = word.score + second;
        if (estimate >= lowest && estimate > -kNever) firsts.push_back({estimate, split, word});
      }
      if (was_stopped_) return {};
    }
    std::stable_sort(firsts.begin(), firsts.end(),
                     [](const First& a, const First& b) { return a.estimate > b.estimate; });
    if (firsts.size() > kFirstWords) firsts.resize(kFirstWords);
    for (const auto& [estimate, split, first] : firsts) {
      const uint32_t id = words_.trie().value(first.entry);
      KINGLET_ASSIGN_OR_RETURN(const EntryScores* const scores,
                               decoder_.ScoresAfter(predictor_, id));
      const Capitals capitals =
          question_.capitals == Capitals::kAll ? Capitals::kAll : Capitals::kAsWritten;
      WordQuestion question = Question(split, touches(), question_.is_finished, capitals);
      question.lowest = Floor() - first.score;
      for (const FoundWord& second : Find(*scores, question)) {
        const bool joins = words_.Joins(second.entry);
        const double missing = joins ? 0 : question_.errors.missing_space;
        const uint32_t second_id = words_.trie().value(second.entry);
        const std::string text = Written(first.entry) + (joins ? "" : " ") +
                                 WithCapitals(words_.Text(second_id), capitals);
        if (joins && decoder_.blocked_.contains(PlainLetters(text))) continue;
        Offer({text,
               static_cast<double>(decoder_.scores_[first.entry]) +
                   static_cast<double>((*scores)[second.entry]) + missing,
               first.cost + second.cost + missing,
               TypingCandidate::Kind::kTwoWords,
               {id, second_id}});
      }
      if (was_stopped_) return {};
    }
    return {};
  }

  TypingDecoder& decoder_;
  const TypingVocabulary& words_;
  WordPredictor& predictor_;
  const TypingQuestion& question_;
  std::vector<TypingCandidate> best_;
  bool was_stopped_ = false;
  Status cancelled_;
  Mix mix_ = {0, 0, {}};  // of a model of pieces
};

void TypingDecoder::KeepFirstWords(const TypingQuestion& question) {
  const ErrorCosts &now = question.errors, &before = asked_.errors;
  const bool is_alike = now.insertion == before.insertion && now.deletion == before.deletion &&
                        now.transposition == before.transposition &&
                        now.substitution == before.substitution &&
                        question.capitals == asked_.capitals;
  size_t same = 0;
  const auto equal = [](const TouchedCharacter& a, const TouchedCharacter& b) {
    return a.character == b.character && a.cost == b.cost;
  };
  while (is_alike && same < std::min(question.touches.count(), asked_.touches.count()) &&
         std::equal(question.touches.at(same).begin(), question.touches.at(same).end(),
                    asked_.touches.at(same).begin(), asked_.touches.at(same).end(), equal)) {
    ++same;
  }
  first_words_.resize(std::min(first_words_.size(), same + 1));
  if (first_words_.empty()) first_words_.resize(1);  // of no touches
  asked_ = question;
}

Result<TypingAnswer> TypingDecoder::Find(WordPredictor& predictor, const TypingQuestion& question) {
  KINGLET_RETURN_IF_ERROR(MixNext(predictor, question.before));
  KeepFirstWords(question);
  // Contexts with one more word have the cost of a missing space in them.
  if (question.errors.missing_space != costs_.errors().missing_space) after_.clear();
  return Search(*this, predictor, question).Run();
}

}  // namespace kinglet::typing
