#include "converters/passes/nearest.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "converters/thread_shares.h"

namespace kinglet {
namespace {

constexpr uint64_t kVectorsOfPanel = 16;  // centroids of a panel: four SSE registers
constexpr uint64_t kTogether = 2;         // vectors that share the loads of a panel
constexpr uint64_t kTileVectors = 64;     // vectors that stay in the L2 cache for all panels

using PanelScores = std::array<float, kVectorsOfPanel>;
// For one vector: the best score so far in each column of a panel, and the panel of that score.
struct Best {
  PanelScores score;
  std::array<uint32_t, kVectorsOfPanel> panel;
};

// Four floats in one register, because GCC does not keep plain arrays of scores in registers. Each
// score is summed on its own, so its bits do not depend on the width of the machine's vectors.
using Quad = float __attribute__((vector_size(16)));
constexpr uint64_t kQuads = kVectorsOfPanel / 4;

Quad LoadQuad(const float* from) {
  Quad quad;
  std::memcpy(&quad, from, sizeof quad);
  return quad;
}

// Scores `kCount` adjacent vectors against one panel and keeps the better scores.
template <uint64_t kCount>
void VisitPanel(const float* vectors, uint64_t length, const float* panel,
                const float* half_squares, uint32_t number, Best* best) {
  Quad scores[kCount][kQuads];
  for (uint64_t v = 0; v < kCount; ++v) {
    for (uint64_t q = 0; q < kQuads; ++q) scores[v][q] = LoadQuad(half_squares + 4 * q);
  }
  for (uint64_t i = 0; i < length; ++i) {
    Quad entries[kQuads];
    for (uint64_t q = 0; q < kQuads; ++q)
      entries[q] = LoadQuad(panel + i * kVectorsOfPanel + 4 * q);
    for (uint64_t v = 0; v < kCount; ++v) {
      const float x = vectors[v * length + i];
      for (uint64_t q = 0; q < kQuads; ++q) scores[v][q] -= x * entries[q];
    }
  }
  for (uint64_t v = 0; v < kCount; ++v) {
    PanelScores score;
    std::memcpy(score.data(), scores[v], sizeof score);
    for (uint64_t c = 0; c < kVectorsOfPanel; ++c) {
      const bool nearer = score[c] < best[v].score[c];
      best[v].score[c] = nearer ? score[c] : best[v].score[c];
      best[v].panel[c] = nearer ? number : best[v].panel[c];
    }
  }
}

uint32_t FirstOfBest(const Best& best) {
  uint64_t code = best.panel[0] * kVectorsOfPanel;
  float score = best.score[0];
  for (uint64_t c = 1; c < kVectorsOfPanel; ++c) {
    const uint64_t other = best.panel[c] * kVectorsOfPanel + c;
    if (best.score[c] < score || (best.score[c] == score && other < code)) {
      score = best.score[c];
      code = other;
    }
  }
  return static_cast<uint32_t>(code);
}

}  // namespace

NearestCentroids::NearestCentroids(std::span<const float> centroids, uint64_t count,
                                   uint64_t length)
    : length_(length) {
  const uint64_t panels = (count + kVectorsOfPanel - 1) / kVectorsOfPanel;
  panels_.assign(panels * length * kVectorsOfPanel, 0.0F);
  half_squares_.assign(panels * kVectorsOfPanel, std::numeric_limits<float>::infinity());
  for (uint64_t c = 0; c < count; ++c) {
    float* panel = panels_.data() + c / kVectorsOfPanel * length * kVectorsOfPanel;
    double squares = 0;
    for (uint64_t i = 0; i < length; ++i) {
      const float entry = centroids[c * length + i];
      panel[i * kVectorsOfPanel + c % kVectorsOfPanel] = entry;
      squares += double{entry} * double{entry};
    }
    half_squares_[c] = static_cast<float>(squares / 2);
  }
}

void NearestCentroids::FindRange(const float* vectors, std::span<uint32_t> codes) const {
  const uint64_t panels = half_squares_.size() / kVectorsOfPanel;
  std::array<Best, kTileVectors> best;
  for (uint64_t begin = 0; begin < codes.size(); begin += kTileVectors) {
    const uint64_t count = std::min(kTileVectors, codes.size() - begin);
    for (uint64_t v = 0; v < count; ++v) {
      best[v].score.fill(std::numeric_limits<float>::infinity());
      best[v].panel.fill(0);
    }
    const float* tile = vectors + begin * length_;
    for (uint64_t p = 0; p < panels; ++p) {
      const float* panel = panels_.data() + p * length_ * kVectorsOfPanel;
      const float* half_squares = half_squares_.data() + p * kVectorsOfPanel;
      const auto number = static_cast<uint32_t>(p);
      uint64_t v = 0;
      for (; v + kTogether <= count; v += kTogether) {
        VisitPanel<kTogether>(tile + v * length_, length_, panel, half_squares, number, &best[v]);
      }
      for (; v < count; ++v) {
        VisitPanel<1>(tile + v * length_, length_, panel, half_squares, number, &best[v]);
      }
    }
    for (uint64_t v = 0; v < count; ++v) codes[begin + v] = FirstOfBest(best[v]);
  }
}

void NearestCentroids::Find(const float* vectors, std::span<uint32_t> codes, size_t threads) const {
  RunRanges(codes.size(), threads, [&](uint64_t first, uint64_t end) {
    FindRange(vectors + first * length_, codes.subspan(first, end - first));
  });
}

}  // namespace kinglet
