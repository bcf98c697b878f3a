// Draws from a part of the tokens, against their definition and against the exact distribution.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "tests/runtime/session_fixture.h"

namespace kinglet::session_draw_test {
namespace {

constexpr uint32_t kTokens = 40;
constexpr double kNever = -std::numeric_limits<double>::infinity();

std::vector<DrawOptions> ManyOptions() {
  std::vector<DrawOptions> many;
  for (const double temperature : {0.3, 1.0, 2.5}) {
    for (const uint32_t top_k : {0u, 1u, 2u, 7u, 39u, 40u, UINT32_MAX}) {
      for (const double top_p : {1e-9, 0.3, 0.9, 1 - 1e-12, 1.0}) {
        many.push_back({temperature, top_k, top_p, {}});
      }
    }
    many.push_back({temperature, 0, 1, {0}});
    many.push_back({temperature, 0, 0.7, {39, 3, 3, 17}});
    many.push_back({temperature, 4, 1, {20, 21, 22, 23, 24, 25, 26, 27, 28, 29}});
    many.push_back({temperature, 100, 0.95, {1, 2, 39}});
  }
  return many;
}

// The tokens that remain, in their order.
std::vector<uint32_t> OrderOf(const std::vector<double>& all) {
  std::vector<uint32_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return all[a] > all[b]; });
  std::erase_if(order, [&](uint32_t token) { return all[token] == kNever; });
  return order;
}

// The definition (session.h), from all log-probabilities.
template <class T>
uint32_t DrawByBruteForce(std::vector<double> all, const std::vector<ClusterPlan>& clusters,
                          uint64_t seed, uint64_t position, const DrawOptions& options) {
  for (const uint32_t token : options.excluded) all[token] = kNever;
  const bool among_best = options.top_k > 0 && options.top_k < all.size();
  if (!among_best && options.top_p == 1) {
    return SampleByBruteForce<T>(all, clusters, seed, position, options.temperature);
  }
  std::vector<uint32_t> order = OrderOf(all);
  const auto weight = [&](uint32_t token) {
    return static_cast<double>(Exp((static_cast<T>(all[token]) - static_cast<T>(all[order[0]])) /
                                   static_cast<T>(options.temperature)));
  };
  double total = 0;
  if (among_best) {
    order.resize(std::min<size_t>(order.size(), options.top_k));
    for (const uint32_t token : order) total += weight(token);
  } else {
    for (const ClusterPlan& cluster : clusters) {
      double mass = 0;
      for (uint32_t i = 0; i < cluster.size; ++i) {
        if (all[cluster.first + i] != kNever) mass += weight(cluster.first + i);
      }
      total += mass;
    }
  }
  double sum = 0;
  size_t count = 0;
  while (count < order.size() && (count == 0 || sum < options.top_p * total)) {
    sum += weight(order[count++]);
  }
  const double target = UniformDraw(seed, position, 0) * sum;
  double passed = 0;
  for (size_t i = 0; i < count; ++i) {
    passed += weight(order[i]);
    if (passed > target) return order[i];
  }
  ADD_FAILURE() << "no word";
  return 0;
}

TEST(SessionDraw, TokensAreTheDefinitionsWhateverWasOpened) {
  for (const bool quantised : {false, true}) {
    for (const Backend& backend : Backends()) {
      const auto model = Open(TinyMicronet(WholeOptions(quantised)), std::string(backend.name));
      const auto full = Start(model), lazy = Start(model);
      const auto& clusters = model->plan().clusters;
      for (const uint32_t id : Tokens(12, kTokens)) {
        ASSERT_TRUE(full->StepToken(id).ok());
        const std::vector<double> all = Full(*full);
        const State state = *full->Save();
        const uint64_t position = full->position() - 1;
        uint64_t seed = 91 * position;
        for (const DrawOptions& options : ManyOptions()) {
          ASSERT_TRUE(lazy->Restore(state).ok());  // nothing is computed yet
          const auto drawn = lazy->Draw(++seed, options);
          ASSERT_TRUE(drawn.ok()) << drawn.status().message();
          const uint32_t expected =
              backend.real_bytes == sizeof(double)
                  ? DrawByBruteForce<double>(all, clusters, seed, position, options)
                  : DrawByBruteForce<float>(all, clusters, seed, position, options);
          ASSERT_EQ(*drawn, expected) << backend.name << " temperature " << options.temperature
                                      << " top-k " << options.top_k << " top-p " << options.top_p;
          ASSERT_EQ(*full->Draw(seed, options), expected);
        }
      }
    }
  }
}

// Tests also fractions that equal a sum of the tokens' probabilities, to the last bit.
TEST(SessionDraw, ANucleusIsThatOfTheQuery) {
  for (const Backend& backend : Backends()) {
    const auto session = Start(Open(TinyMicronet(WholeOptions(true)), std::string(backend.name)));
    for (const uint32_t id : {3u, 30u, 3u}) ASSERT_TRUE(session->StepToken(id).ok());
    std::vector<double> all(kTokens);
    ASSERT_TRUE(session->Probabilities(std::span<double>(all)).ok());
    std::sort(all.begin(), all.end(), std::greater<>());
    double share = 0;
    for (uint32_t tokens = 1; tokens < kTokens; ++tokens) {
      share += all[tokens - 1];
      for (const double p : {share, std::nextafter(share, 1.0)}) {
        if (p > 1) continue;  // floats add up to 1 only nearly
        const auto nucleus = session->TopP(p);
        ASSERT_TRUE(nucleus.ok()) << nucleus.status().message();
        EXPECT_EQ(nucleus->size(), p == share ? tokens : tokens + 1);
        std::vector<bool> drawn(kTokens);
        for (uint64_t seed = 0; seed < 500; ++seed)
          drawn[*session->Draw(seed, {.top_p = p})] = true;
        size_t of_nucleus = 0;
        for (const Candidate& token : *nucleus) of_nucleus += drawn[token.id] ? 1 : 0;
        EXPECT_EQ(of_nucleus, static_cast<size_t>(std::count(drawn.begin(), drawn.end(), true)));
        // The last token is drawn unless it is very rare.
        if (nucleus->back().log_probability > std::log(0.01)) {
          EXPECT_TRUE(drawn[nucleus->back().id]) << p;
        }
      }
    }
  }
}

// Exceeded about once in 30,000 (Wilson and Hilferty 1931).
double LargestChiSquare(size_t degrees) {
  const double n = static_cast<double>(degrees), part = 2 / (9 * n);
  return n * std::pow(1 - part + 4 * std::sqrt(part), 3);
}

TEST(SessionDraw, FrequenciesAreTheExactDistributions) {
  constexpr int kDraws = 100'000;
  const auto session = Start(Open(TinyMicronet(WholeOptions(true)), "cpu"));
  for (const uint32_t id : {3u, 30u, 3u, 15u}) ASSERT_TRUE(session->StepToken(id).ok());
  const std::vector<double> all = Full(*session);
  const std::vector<uint32_t> best = OrderOf(all);
  for (const DrawOptions& options :
       {DrawOptions{1, 0, 1, {}}, DrawOptions{0.7, 12, 1, {}}, DrawOptions{1, 0, 0.97, {}},
        DrawOptions{1.4, 30, 0.97, {}}, DrawOptions{1, 0, 1, {best[0], best[5]}}}) {
    // In double: a token of the tail more or less would show.
    std::vector<double> weights(kTokens);
    double kept = 0;
    std::vector<uint32_t> order;
    for (const uint32_t token : best) {
      if (std::count(options.excluded.begin(), options.excluded.end(), token) > 0) continue;
      if (options.top_k > 0 && order.size() == options.top_k) break;
      order.push_back(token);
      kept += std::exp(all[token] / options.temperature);
    }
    double sum = 0;
    size_t tokens = 0;
    while (tokens < order.size() && sum < options.top_p * kept * (1 - 1e-12)) {
      const uint32_t token = order[tokens++];
      sum += weights[token] = std::exp(all[token] / options.temperature);
    }
    std::vector<int> drawn(kTokens);
    for (uint64_t seed = 0; seed < kDraws; ++seed) ++drawn[*session->Draw(seed, options)];
    double chi_square = 0;
    for (uint32_t w = 0; w < kTokens; ++w) {
      if (weights[w] == 0) {
        EXPECT_EQ(drawn[w], 0) << w;
        continue;
      }
      const double mean = kDraws * weights[w] / sum;
      chi_square += (drawn[w] - mean) * (drawn[w] - mean) / mean;
    }
    ASSERT_GT(tokens, 5u);
    EXPECT_LT(chi_square, LargestChiSquare(tokens - 1)) << options.top_k << " " << options.top_p;
  }
}

TEST(SessionDraw, ColdIsTheMostProbableTokenThatIsNotOmitted) {
  const auto session = Start(Open(TinyMicronet(WholeOptions(false)), "cpu"));
  for (const uint32_t id : {3u, 30u}) ASSERT_TRUE(session->StepToken(id).ok());
  const std::vector<uint32_t> best = OrderOf(Full(*session));
  for (const uint64_t seed : {uint64_t{0}, UINT64_MAX}) {
    EXPECT_EQ(*session->Draw(seed, {.temperature = 0}), best[0]);
    EXPECT_EQ(*session->Draw(seed, {.temperature = 0, .top_k = 5, .top_p = 0.5}), best[0]);
    EXPECT_EQ(*session->Draw(seed, {.temperature = 0, .excluded = {best[1], best[0]}}), best[2]);
    EXPECT_EQ(*session->Draw(seed, {.top_k = 1}), best[0]);
    EXPECT_EQ(*session->Draw(seed, {.top_p = 5e-324}), best[0]);
    EXPECT_LT(*session->Draw(seed, {}), kTokens);
  }
  std::vector<uint32_t> all_but_one = best;
  std::erase(all_but_one, 37u);
  EXPECT_EQ(*session->Draw(1, {.excluded = all_but_one}), 37u);
  EXPECT_EQ(*session->Draw(1, {.top_p = 0.5, .excluded = all_but_one}), 37u);
}

TEST(SessionDraw, ImpossibleOptionsAreRefused) {
  const auto session = Start(Open(TinyMicronet(WholeOptions(false)), "cpu"));
  ASSERT_TRUE(session->StepToken(1).ok());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double top_p : {0.0, -0.1, 1.0001, nan, HUGE_VAL, -HUGE_VAL}) {
    EXPECT_EQ(session->Draw(1, {.top_p = top_p}).status().code(), KINGLET_INVALID_ARGUMENT);
  }
  for (const double temperature : {-1.0, nan, HUGE_VAL}) {
    EXPECT_EQ(session->Draw(1, {.temperature = temperature}).status().code(),
              KINGLET_INVALID_ARGUMENT);
  }
  EXPECT_EQ(session->Draw(1, {.excluded = {kTokens}}).status().code(), KINGLET_ID_OUT_OF_RANGE);
  std::vector<uint32_t> all(kTokens);
  std::iota(all.begin(), all.end(), 0);
  for (const double temperature : {0.0, 1.0}) {
    for (const double top_p : {0.5, 1.0}) {
      const DrawOptions options{temperature, 0, top_p, all};
      EXPECT_EQ(session->Draw(1, options).status().code(), KINGLET_INVALID_ARGUMENT);
    }
  }
  // Of several lanes, if one has an error, none is answered.
  const auto lanes = Start(Open(TinyMicronet(WholeOptions(false)), "cpu"), {.lanes = 2});
  ASSERT_TRUE(lanes->StepToken(1, 0).ok());
  std::array<uint32_t, 2> out = {99, 99};
  EXPECT_EQ(
      lanes->DrawLanes(std::array{0u, 1u}, std::array{uint64_t{1}, uint64_t{2}}, {}, out).code(),
      KINGLET_NO_TOKEN_YET);
  EXPECT_EQ(out, (std::array<uint32_t, 2>{99, 99}));
}

}  // namespace
}  // namespace kinglet::session_draw_test
