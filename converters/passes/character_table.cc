#include "converters/passes/character_table.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "converters/checkpoints/entries.h"
#include "converters/passes/word_batch.h"
#include "converters/thread_shares.h"
#include "format/limits.h"
#include "kernels/portable_functions.h"

namespace kinglet {
namespace {

constexpr const char* kCharacterCnn = "character CNN";
// Sums of one character at one position of a filter, over all filters: 1 GiB. Baevski & Auli's
// model has 3.4 million.
constexpr uint64_t kMostCharacterSums = uint64_t{1} << 27;

Status RefuseCnn(StatusCode code, const std::string& where, const std::string& expected,
                 const std::string& found) {
  return Status::Refusal(code, kCharacterCnn, where, expected, found);
}

// 1 to `most`, so that products of two such sizes cannot overflow.
Status CheckCnnSize(const std::string& where, uint64_t size, uint64_t most) {
  if (size >= 1 && size <= most) return {};
  return RefuseCnn(KINGLET_INVALID_CHECKPOINT, where, "1 to " + std::to_string(most),
                   std::to_string(size));
}

Status CheckFilters(const CharacterCnn& cnn) {
  uint64_t sums = 0;
  for (size_t i = 0; i < cnn.filters.size(); ++i) {
    const CharacterFilter& filter = cnn.filters[i];
    const std::string where = "filter " + std::to_string(i) + ", ";
    KINGLET_RETURN_IF_ERROR(CheckCnnSize(where + "width", filter.width, cnn.longest));
    KINGLET_RETURN_IF_ERROR(CheckCnnSize(where + "channels", filter.channels, kMaxExtent));
    KINGLET_RETURN_IF_ERROR(CheckArray(kCharacterCnn, where + "weight",
                                       {filter.channels, cnn.vector_width, filter.width},
                                       filter.weight));
    KINGLET_RETURN_IF_ERROR(
        CheckArray(kCharacterCnn, where + "bias", {filter.channels}, filter.bias));
    sums += kCharacterSymbols * filter.width * filter.channels;
    if (sums <= kMostCharacterSums) continue;
    return RefuseCnn(KINGLET_UNSUPPORTED, "filters",
                     "at most " + std::to_string(kMostCharacterSums / kCharacterSymbols) +
                         ", the sum of their widths times their channels",
                     "more");
  }
  return {};
}

Status CheckCnn(const CharacterCnn& cnn) {
  KINGLET_RETURN_IF_ERROR(CheckCnnSize("longest spelling", cnn.longest, kMaxExtent));
  KINGLET_RETURN_IF_ERROR(CheckCnnSize("width of a character", cnn.vector_width, kMaxExtent));
  KINGLET_RETURN_IF_ERROR(CheckCnnSize("width of a word", cnn.width, kMaxExtent));
  if (cnn.filters.empty()) {
    return RefuseCnn(KINGLET_INVALID_CHECKPOINT, "filters", "at least 1", "0");
  }
  KINGLET_RETURN_IF_ERROR(
      CheckArray(kCharacterCnn, "characters", {kCharacterSymbols, cnn.vector_width}, cnn.vectors));
  KINGLET_RETURN_IF_ERROR(CheckFilters(cnn));
  const uint64_t features = cnn.Features();
  for (size_t i = 0; i < cnn.highway.size(); ++i) {
    const std::string where = "highway layer " + std::to_string(i) + ", ";
    KINGLET_RETURN_IF_ERROR(CheckArray(kCharacterCnn, where + "weight", {2 * features, features},
                                       cnn.highway[i].weight));
    KINGLET_RETURN_IF_ERROR(
        CheckArray(kCharacterCnn, where + "bias", {2 * features}, cnn.highway[i].bias));
  }
  KINGLET_RETURN_IF_ERROR(
      CheckArray(kCharacterCnn, "projection, weight", {cnn.width, features}, cnn.projection));
  return CheckArray(kCharacterCnn, "projection, bias", {cnn.width}, cnn.bias);
}

// A filter with its products summed over the entries of a character's vector: what each character
// adds to each channel at each position of the window. A spelling then takes additions only.
class SummedFilter {
 public:
  SummedFilter(const CharacterFilter& filter, const CharacterCnn& cnn)
      : width_(filter.width), channels_(filter.channels), bias_(filter.bias) {
    sums_.resize(width_ * kCharacterSymbols * channels_);
    double* sum = sums_.data();
    for (uint64_t place = 0; place < width_; ++place) {
      for (uint64_t symbol = 0; symbol < kCharacterSymbols; ++symbol) {
        const float* vector = cnn.vectors.data() + symbol * cnn.vector_width;
        for (uint64_t channel = 0; channel < channels_; ++channel, ++sum) {
          const float* row = filter.weight.data() + channel * cnn.vector_width * width_ + place;
          for (uint64_t i = 0; i < cnn.vector_width; ++i) {
            *sum += double{row[i * width_]} * double{vector[i]};
          }
        }
      }
    }
  }

  uint64_t channels() const { return channels_; }

  // The features of `spelling`, into `largest`, [channels]; `window` is work space of that size.
  void Apply(std::string_view spelling, uint64_t longest, double* window, double* largest) const {
    std::fill_n(largest, channels_, 0.0);
    // Windows after the spelling's end all read paddings alone: one of them is enough.
    const uint64_t last = std::min<uint64_t>(spelling.size(), longest - width_);
    for (uint64_t first = 0; first <= last; ++first) {
      std::copy_n(bias_.data(), channels_, window);
      for (uint64_t place = 0; place < width_; ++place) {
        const uint64_t at = first + place;
        const uint64_t symbol =
            at < spelling.size() ? uint64_t{1} + static_cast<unsigned char>(spelling[at]) : 0;
        const double* sums = sums_.data() + (place * kCharacterSymbols + symbol) * channels_;
        for (uint64_t channel = 0; channel < channels_; ++channel) window[channel] += sums[channel];
      }
      for (uint64_t channel = 0; channel < channels_; ++channel) {
        largest[channel] = std::max(largest[channel], window[channel]);
      }
    }
  }

 private:
  uint64_t width_, channels_;
  std::span<const float> bias_;
  std::vector<double> sums_;  // [width][257][channels]
};

// Computes the vectors of one batch of words. REQUIRES: `cnn` and `filters` outlive the object.
class SpellingBatch {
 public:
  SpellingBatch(const CharacterCnn& cnn, std::span<const SummedFilter> filters)
      : cnn_(cnn),
        filters_(filters),
        features_(cnn.Features()),
        x_(features_),
        highway_(cnn.highway.empty() ? 0 : 2 * features_),
        output_(cnn.width) {
    uint64_t widest = 0;
    for (const SummedFilter& filter : filters) widest = std::max(widest, filter.channels());
    window_.resize(widest);
    largest_.resize(widest);
  }

  // Writes the rows of the table. Returns false if a row is not finite. REQUIRES: at most
  // kBatchWords spellings.
  bool Compute(std::span<const std::string> spellings, float* rows) {
    std::fill_n(x_.Feature(0), features_ * kBatchWords, 0.0);
    for (size_t word = 0; word < spellings.size(); ++word) Convolve(spellings[word], word);
    for (const HighwayLayer& layer : cnn_.highway) ApplyHighway(layer);
    MultiplyBatch(cnn_.projection.data(), cnn_.width, features_, x_.Feature(0), output_.Feature(0));
    bool finite = true;
    for (size_t word = 0; word < spellings.size(); ++word) {
      for (uint64_t i = 0; i < cnn_.width; ++i, ++rows) {
        *rows = static_cast<float>(output_.Feature(i)[word] + cnn_.bias[i]);
        finite = finite && std::isfinite(*rows);
      }
    }
    return finite;
  }

 private:
  void Convolve(std::string_view spelling, size_t word) {
    spelling = spelling.substr(0, cnn_.longest);
    uint64_t feature = 0;
    for (const SummedFilter& filter : filters_) {
      filter.Apply(spelling, cnn_.longest, window_.data(), largest_.data());
      for (uint64_t channel = 0; channel < filter.channels(); ++channel, ++feature) {
        x_.Feature(feature)[word] = largest_[channel];
      }
    }
  }

  void ApplyHighway(const HighwayLayer& layer) {
    MultiplyBatch(layer.weight.data(), 2 * features_, features_, x_.Feature(0),
                  highway_.Feature(0));
    for (uint64_t feature = 0; feature < features_; ++feature) {
      const double* proposals = highway_.Feature(feature);
      const double* gates = highway_.Feature(features_ + feature);
      double* x = x_.Feature(feature);
      for (size_t word = 0; word < kBatchWords; ++word) {
        const double proposal = std::max(proposals[word] + layer.bias[feature], 0.0);
        const double gate = portable::Sigmoid(gates[word] + layer.bias[features_ + feature]);
        x[word] = gate * x[word] + (1 - gate) * proposal;
      }
    }
  }

  const CharacterCnn& cnn_;
  std::span<const SummedFilter> filters_;
  uint64_t features_;
  FeatureBatch x_, highway_, output_;
  std::vector<double> window_, largest_;
};

}  // namespace

uint64_t CharacterCnn::Features() const {
  uint64_t features = 0;
  for (const CharacterFilter& filter : filters) features += filter.channels;
  return features;
}

Result<std::vector<float>> CharacterTable(const CharacterCnn& cnn,
                                          std::span<const std::string> spellings, size_t threads) {
  KINGLET_RETURN_IF_ERROR(CheckCnn(cnn));
  if (spellings.size() > kLargestCharacterTable / cnn.width) {
    return RefuseCnn(KINGLET_UNSUPPORTED, "table", "at most 2^32 entries",
                     ShapeText({spellings.size(), cnn.width}));
  }
  std::vector<SummedFilter> filters;
  filters.reserve(cnn.filters.size());
  for (const CharacterFilter& filter : cnn.filters) filters.emplace_back(filter, cnn);

  std::vector<float> table(spellings.size() * cnn.width);
  const uint64_t batches = (spellings.size() + kBatchWords - 1) / kBatchWords;
  // Memory for threads is allocated before they start, because threads must not throw.
  threads = std::clamp<size_t>(batches, 1, threads);
  std::vector<SpellingBatch> shares;
  shares.reserve(threads);
  for (size_t share = 0; share < threads; ++share) shares.emplace_back(cnn, filters);
  std::vector<char> finite(threads, 1);
  RunShares(threads, [&](size_t share) {
    for (uint64_t batch = share; batch < batches; batch += threads) {
      const uint64_t first = batch * kBatchWords;
      const uint64_t count = std::min<uint64_t>(kBatchWords, spellings.size() - first);
      if (!shares[share].Compute(spellings.subspan(first, count),
                                 table.data() + first * cnn.width)) {
        finite[share] = 0;
      }
    }
  });
  if (std::find(finite.begin(), finite.end(), 0) == finite.end()) return table;
  const auto entry =
      std::find_if_not(table.begin(), table.end(), [](float x) { return std::isfinite(x); });
  const auto at = static_cast<uint64_t>(entry - table.begin());
  return RefuseCnn(
      KINGLET_NOT_FINITE,
      "word " + std::to_string(at / cnn.width) + ", feature " + std::to_string(at % cnn.width),
      "a finite float32", std::isnan(*entry) ? "NaN" : "infinity");
}

}  // namespace kinglet
