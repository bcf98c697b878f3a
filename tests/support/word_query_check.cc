#include "tests/support/word_query_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "converters/splitmix.h"
#include "kernels/functions.h"
#include "kernels/ring.h"
#include "runtime/accounting/meter.h"
#include "runtime/session.h"

namespace kinglet {
namespace {

// --- brute force

// Everything about the next token of a stream.
struct AllWords {
  std::vector<double> log_p, p;
  std::vector<uint32_t> order;  // ids, the most probable first
  std::vector<uint32_t> rank;   // by id, from 1
  double sum = 1;               // of all probabilities, without rounding
};

template <class T>
AllWords ReadAllWords(Session& session, EmptyCache empty_cache) {
  AllWords all;
  const auto& cache = session.model().plan().cache;
  if (cache && empty_cache == EmptyCache::kReference && cache->first_position <= 1 &&
      CachePairs(session.position() - 1, cache->capacity, cache->first_position) == 0) {
    all.sum = static_cast<double>(static_cast<T>(1.0 - cache->lambda));
  }
  all.log_p.resize(session.model().vocabulary_size());
  if (!session.LogProbabilities(std::span<double>(all.log_p)).ok()) return {};
  for (const double log_p : all.log_p) {
    all.p.push_back(static_cast<double>(Exp(static_cast<T>(log_p))));
  }
  all.order.resize(all.log_p.size());
  std::iota(all.order.begin(), all.order.end(), 0);
  std::sort(all.order.begin(), all.order.end(), [&](uint32_t a, uint32_t b) {
    return all.log_p[a] != all.log_p[b] ? all.log_p[a] > all.log_p[b] : a < b;
  });
  all.rank.resize(all.order.size());
  for (uint32_t i = 0; i < all.order.size(); ++i) all.rank[all.order[i]] = i + 1;
  return all;
}

std::vector<Candidate> TopPByBruteForce(const AllWords& all, double share) {
  std::vector<Candidate> nucleus;
  double sum = 0;
  for (const uint32_t id : all.order) {
    if (share < 1 && sum >= share * all.sum) break;
    sum += all.p[id];
    nucleus.push_back({id, all.log_p[id]});
  }
  return nucleus;
}

std::vector<Candidate> TopKByBruteForce(const AllWords& all, const std::vector<bool>& in_set,
                                        uint32_t k) {
  std::vector<Candidate> best;
  for (const uint32_t id : all.order) {
    if (best.size() == k) break;
    if (in_set[id]) best.push_back({id, all.log_p[id]});
  }
  return best;
}

double ProbabilityByBruteForce(const AllWords& all, const std::vector<bool>& in_set) {
  double sum = 0;
  for (size_t id = 0; id < all.p.size(); ++id) sum += in_set[id] ? all.p[id] : 0;
  return sum;
}

// The first character of a text, or its first byte if that begins no character.
std::string FirstCharacter(const std::string& text) {
  if (text.empty()) return "";
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(0);
  const size_t bytes = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  uint32_t code = bytes == 1 ? first : first & (0x7FU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return text.substr(0, 1);
    code = code << 6 | (byte(i) & 0x3FU);
  }
  constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_one = (first < 0x80 || first >= 0xC0) && code >= kLeast[bytes] &&
                      code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  return text.substr(0, is_one ? bytes : 1);
}

std::map<std::string, double> NextByBruteForce(const AllWords& all,
                                               const std::vector<std::string>& texts,
                                               const std::string& prefix) {
  std::map<std::string, double> next;
  for (size_t id = 0; id < texts.size(); ++id) {
    if (!texts[id].starts_with(prefix)) continue;
    next[FirstCharacter(texts[id].substr(prefix.size()))] += all.p[id];
  }
  return next;
}

// Every word's begin and then 2^32, by the definition in runtime/queries/intervals.h, from the
// buffers that the softmax's and the cache's nodes wrote.
template <class T>
std::vector<uint64_t> BeginsByBruteForce(const Model& model, const StreamFrame& frame) {
  const Plan& plan = model.plan();
  const auto buffer = [&](BufferId id) { return model.layout()[id].At<T>(frame); };
  const auto share = [](uint64_t n, double part, double sum) {
    return sum > 0 ? static_cast<uint64_t>(
                         std::floor(static_cast<double>(n) * (std::min(part, sum) / sum)))
                   : 0;
  };
  // E of every cluster.
  std::vector<std::vector<double>> sums;
  for (const ClusterPlan& cluster : plan.clusters) {
    const T* const logits = buffer(cluster.logits);
    const T* const tiles = buffer(cluster.tiles.sums);
    const T reference = buffer(cluster.normaliser)[0];
    std::vector<double> upto;
    double before = 0, within = 0;
    for (uint32_t i = 0; i < cluster.size; ++i) {
      if (i > 0 && i % kSumTile == 0) {
        before += static_cast<double>(tiles[i / kSumTile - 1]);
        within = 0;
      }
      const auto most = static_cast<double>(tiles[i / kSumTile]);
      upto.push_back(before + std::min(within, most));
      within += static_cast<double>(Exp(logits[i] - reference));
      const bool tile_ends =
          (i + 1) % kSumTile == 0 ||
          (i + 1 == cluster.size && (plan.clusters.size() == 1 || &cluster != &plan.clusters[0]));
      if (i + 1 == cluster.size)
        upto.push_back(before + (tile_ends ? most : std::min(within, most)));
    }
    if (cluster.size == 0) upto.push_back(0);
    sums.push_back(upto);
  }
  // m of every word.
  std::vector<double> sums_of_weights(plan.vocabulary_size);
  double lambda = 0;
  T total{0};
  if (plan.cache) {
    total = *buffer(plan.cache->total);
    const uint32_t* const words = model.layout()[plan.cache->tokens].At<uint32_t>(frame);
    const uint64_t pairs =
        CachePairs(frame.position, plan.cache->capacity, plan.cache->first_position);
    for (uint64_t i = 0; i < pairs; ++i) {
      sums_of_weights[words[i]] += static_cast<double>(buffer(plan.cache->weights)[i]);
    }
    lambda = total > T{0} ? plan.cache->lambda : 0;
  }
  const auto units = [&](uint32_t id) {
    return total > T{0} ? static_cast<uint64_t>(
                              std::floor(static_cast<double>(static_cast<T>(sums_of_weights[id])) /
                                         static_cast<double>(total) * 0x1p52))
                        : 0;
  };
  // F of every cluster.
  std::vector<double> softmax = {sums[0].back()};
  const T* const head = buffer(plan.clusters[0].logits);
  const T reference = buffer(plan.clusters[0].normaliser)[0];
  double all = softmax[0];
  for (size_t c = 1; c < plan.clusters.size(); ++c) {
    const ClusterPlan& cluster = plan.clusters[c];
    softmax.push_back(
        cluster.size > 0 ? static_cast<double>(Exp(head[cluster.parent_logit] - reference)) : 0);
    all += softmax[c];
  }
  std::vector<std::vector<double>> mass;
  double total_mass = 0;
  for (size_t c = 0; c < plan.clusters.size(); ++c) {
    const double s = (1 - lambda) * (softmax[c] / all);
    uint64_t upto = 0;
    mass.emplace_back();
    for (uint32_t i = 0; i <= plan.clusters[c].size; ++i) {
      const bool ends = i == plan.clusters[c].size;
      const double part = ends ? 1 : sums[c][i] / sums[c].back();
      mass[c].push_back((sums[c].back() > 0 ? s * part
                         : ends             ? s
                                            : 0) +
                        lambda * (static_cast<double>(upto) / 0x1p52));
      if (!ends) upto += units(plan.clusters[c].first + i);
    }
    total_mass += mass[c].back();
  }
  std::vector<uint64_t> begins, of_clusters;
  const uint64_t spare = (uint64_t{1} << 32) - plan.vocabulary_size;
  double before = 0;
  for (size_t c = 0; c < plan.clusters.size(); ++c) {
    of_clusters.push_back(plan.clusters[c].first + share(spare, before, total_mass));
    before += mass[c].back();
  }
  of_clusters.push_back(uint64_t{1} << 32);
  for (size_t c = 0; c < plan.clusters.size(); ++c) {
    const uint64_t points = of_clusters[c + 1] - of_clusters[c] - plan.clusters[c].size;
    for (uint32_t i = 0; i < plan.clusters[c].size; ++i) {
      begins.push_back(of_clusters[c] + i + share(points, mass[c][i], mass[c].back()));
    }
  }
  begins.push_back(uint64_t{1} << 32);
  return begins;
}

// --- the comparison

bool Same(const std::vector<Candidate>& a, const std::vector<Candidate>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Candidate& x, const Candidate& y) {
                      return x.id == y.id && x.log_probability == y.log_probability;
                    });
}

class Checker {
 public:
  Checker(std::shared_ptr<const Model> model, std::unique_ptr<Session> session,
          const WordQueryCheckOptions& options)
      : model_(std::move(model)),
        session_(std::move(session)),
        options_(options),
        random_(options.seed),
        words_(model_->vocabulary_size()) {
    if (const Vocabulary* const vocabulary = model_->vocabulary()) {
      for (uint32_t id = 0; id < words_; ++id) texts_.push_back(vocabulary->Word(id));
    }
    session_->set_observer(
        [this](const Node&, std::span<const StreamFrame> frames) { frame_ = frames.front(); });
  }

  Status Run(std::span<const uint32_t> text) {
    const size_t first = text.size() - options_.states;
    for (size_t i = 0; i < text.size(); ++i) {
      KINGLET_RETURN_IF_ERROR(session_->StepToken(text[i]));
      if (i < first) continue;
      KINGLET_RETURN_IF_ERROR(TraitsOf(model_->backend()).real64 ? CheckState<double>(i, text)
                                                                 : CheckState<float>(i, text));
    }
    return Status();
  }
  WordQueryReport TakeReport() && {
    for (auto& [kind, check] : report_.kinds) {
      check.mean_work /= static_cast<double>(std::max<uint64_t>(check.measured, 1));
    }
    return std::move(report_);
  }

 private:
  // Compares the answer of `query`. The work is measured if the lane has answered no other query
  // about this token.
  enum class Lane : uint8_t { kFresh, kAsked };
  template <class Query>
  Status Check(const std::string& kind, const std::string& what, const Query& query,
               Lane lane = Lane::kFresh) {
    if (lane == Lane::kFresh) KINGLET_RETURN_IF_ERROR(session_->Restore(*state_));
    KINGLET_ASSIGN_OR_RETURN(const bool same, query());
    WordQueryCheck& check = report_.kinds[kind];
    ++check.made;
    if (lane == Lane::kFresh) {
      const bool adds_up =
          kind.starts_with("top-p") || kind.ends_with(", total") || kind.ends_with(", next");
      const double work = Operations() / (adds_up ? full_sum_work_ : full_work_);
      ++check.measured;
      check.mean_work += work;
      check.largest_work = std::max(check.largest_work, work);
      const QueryWork& opened = session_->last_work();
      check.opens_more = check.opens_more || (opened.cache && !full_opened_.cache) ||
                         opened.clusters.Count() > full_opened_.clusters.Count();
    }
    if (!same) {
      ++check.differ;
      if (report_.first_difference.empty()) {
        report_.first_difference =
            kind + " of " + what + " at position " + std::to_string(session_->position());
      }
    }
    return Status();
  }
  double Operations() const {
    return QueryOperations(model_->plan(), TraitsOf(model_->backend()), session_->position() - 1,
                           session_->last_work())
        .Total();
  }
  uint32_t AnyWord() { return static_cast<uint32_t>(random_.Below(words_)); }

  template <class T>
  Status CheckState(size_t i, std::span<const uint32_t> text) {
    KINGLET_ASSIGN_OR_RETURN(State state, session_->Save());
    state_ = std::move(state);
    const AllWords all = ReadAllWords<T>(*session_, options_.empty_cache);
    full_work_ = Operations();
    full_opened_ = session_->last_work();
    KINGLET_RETURN_IF_ERROR(session_->Restore(*state_));
    std::vector<double> probabilities(words_);
    KINGLET_RETURN_IF_ERROR(session_->Probabilities(std::span<double>(probabilities)));
    full_sum_work_ = Operations();
    KINGLET_RETURN_IF_ERROR(session_->ComputeAll());  // every logit is in the frame
    const std::vector<uint64_t> begins = BeginsByBruteForce<T>(*model_, frame_);
    ++report_.states;
    for (const double share : {1e-9, 0.1, 0.5, 0.9, 0.95, 1.0}) {
      const std::vector<Candidate> expected = TopPByBruteForce(all, share);
      KINGLET_RETURN_IF_ERROR(
          Check("top-p " + std::to_string(share).substr(0, 4), "", [&]() -> Result<bool> {
            KINGLET_ASSIGN_OR_RETURN(const auto found, session_->TopP(share));
            return Same(found, expected);
          }));
    }
    std::vector<uint32_t> asked = {all.order.front(),
                                   all.order.back(),
                                   0,
                                   words_ - 1,
                                   AnyWord(),
                                   text[i],
                                   text[std::min(i + 1, text.size() - 1)]};
    for (const uint32_t id : asked) {
      KINGLET_RETURN_IF_ERROR(Check("rank", std::to_string(id), [&]() -> Result<bool> {
        KINGLET_ASSIGN_OR_RETURN(const uint32_t rank, session_->Rank(id));
        return rank == all.rank[id];
      }));
    }
    for (const uint32_t count : {0U, 1U, 20U, words_ / 10, words_}) {
      std::vector<uint32_t> ids(count);
      for (uint32_t& id : ids) id = AnyWord();
      if (count == words_) std::iota(ids.begin(), ids.end(), 0);
      if (count == 20) ids.insert(ids.end(), ids.begin(), ids.begin() + 10);
      KINGLET_RETURN_IF_ERROR(CheckSet("set", std::to_string(count) + " words", ids, all));
    }
    if (!texts_.empty())
      KINGLET_RETURN_IF_ERROR(CheckPrefixes(all, text[std::min(i + 1, text.size() - 1)]));
    for (const uint32_t id : asked) {
      KINGLET_RETURN_IF_ERROR(CheckInterval(id, begins, Lane::kFresh));
    }
    const bool every_word = report_.states <= options_.every_word;
    for (uint32_t n = 0; n < (every_word ? words_ : options_.words); ++n) {
      KINGLET_RETURN_IF_ERROR(CheckInterval(every_word ? n : AnyWord(), begins, Lane::kAsked));
    }
    // The stream continues from its last position.
    return session_->Restore(*state_);
  }

  std::string KindOf(const std::string& kind_of_few, size_t words) const {
    return words > words_ / 2 ? "most words" : kind_of_few;
  }

  Status CheckSet(const std::string& kind_of_few, const std::string& what,
                  const std::vector<uint32_t>& ids, const AllWords& all) {
    const std::string kind = KindOf(kind_of_few, ids.size());
    std::vector<bool> in_set(words_);
    for (const uint32_t id : ids) in_set[id] = true;
    for (const uint32_t k : {0U, 1U, 5U, words_ + 1}) {
      KINGLET_RETURN_IF_ERROR(
          Check(kind + (k > 5 ? ", all best" : ", best"), what, [&]() -> Result<bool> {
            KINGLET_ASSIGN_OR_RETURN(const auto found, session_->TopKOf(TokenSet(words_, ids), k));
            return Same(found, TopKByBruteForce(all, in_set, k));
          }));
    }
    return Check(kind + ", total", what, [&]() -> Result<bool> {
      KINGLET_ASSIGN_OR_RETURN(const double found, session_->ProbabilityOf(TokenSet(words_, ids)));
      return found == ProbabilityByBruteForce(all, in_set);
    });
  }

  Status CheckPrefixes(const AllWords& all, uint32_t next) {
    const std::string any = texts_[AnyWord()];
    for (const std::string& prefix :
         {std::string(), any.substr(0, 1), texts_[next].substr(0, 1), texts_[next].substr(0, 2),
          any.substr(0, 3), any, any + "\1", std::string("\xFF\xFF")}) {
      std::vector<uint32_t> ids;
      for (uint32_t id = 0; id < words_; ++id) {
        if (texts_[id].starts_with(prefix)) ids.push_back(id);
      }
      std::vector<uint32_t> in_order(model_->vocabulary()->WithPrefix(prefix).begin(),
                                     model_->vocabulary()->WithPrefix(prefix).end());
      std::sort(in_order.begin(), in_order.end());
      KINGLET_RETURN_IF_ERROR(
          Check("prefix, words", prefix, [&]() -> Result<bool> { return in_order == ids; }));
      KINGLET_RETURN_IF_ERROR(CheckSet("prefix", prefix, ids, all));
      const std::string kind = KindOf("prefix", ids.size()) + ", next";
      KINGLET_RETURN_IF_ERROR(Check(kind, prefix, [&]() -> Result<bool> {
        KINGLET_ASSIGN_OR_RETURN(const auto found, session_->NextCharacters(prefix));
        const auto expected = NextByBruteForce(all, texts_, prefix);
        return std::equal(found.begin(), found.end(), expected.begin(), expected.end(),
                          [](const NextCharacter& a, const auto& b) {
                            return a.text == b.first && a.probability == b.second;
                          });
      }));
    }
    return Status();
  }

  Status CheckInterval(uint32_t id, const std::vector<uint64_t>& begins, Lane lane) {
    const Interval expected = {begins[id], begins[id + 1]};
    KINGLET_RETURN_IF_ERROR(Check(
        "interval", std::to_string(id),
        [&]() -> Result<bool> {
          KINGLET_ASSIGN_OR_RETURN(const Interval found, session_->IntervalOf(id));
          return found == expected && expected.low < expected.high;
        },
        lane));
    for (const uint64_t point : {expected.low, expected.high - 1}) {
      KINGLET_RETURN_IF_ERROR(Check(
          "word of a point", std::to_string(point),
          [&]() -> Result<bool> {
            KINGLET_ASSIGN_OR_RETURN(const uint32_t found,
                                     session_->TokenAt(static_cast<uint32_t>(point)));
            return found == id;
          },
          lane));
    }
    return Status();
  }

  const std::shared_ptr<const Model> model_;
  const std::unique_ptr<Session> session_;
  const WordQueryCheckOptions options_;
  SplitMix64 random_;
  const uint32_t words_;
  std::vector<std::string> texts_;
  StreamFrame frame_{};
  std::optional<State> state_;
  double full_work_ = 1, full_sum_work_ = 1;  // all log-probabilities; all probabilities
  QueryWork full_opened_;
  WordQueryReport report_;
};

}  // namespace

Result<WordQueryReport> CheckWordQueries(const std::shared_ptr<const Model>& model,
                                         std::span<const uint32_t> text,
                                         const WordQueryCheckOptions& options) {
  if (text.size() < options.states) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "check", "text",
                           "at least " + std::to_string(options.states) + " tokens",
                           std::to_string(text.size()));
  }
  KINGLET_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                           Session::Create(model, {.empty_cache = options.empty_cache}));
  Checker checker(model, std::move(session), options);
  KINGLET_RETURN_IF_ERROR(checker.Run(text));
  return std::move(checker).TakeReport();
}

}  // namespace kinglet
