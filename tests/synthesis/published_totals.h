// Published numbers of the presets' networks. Nothing here was computed by kinglet.
#ifndef KINGLET_TESTS_SYNTHESIS_PUBLISHED_TOTALS_H_
#define KINGLET_TESTS_SYNTHESIS_PUBLISHED_TOTALS_H_

#include <cstdint>

namespace kinglet {

// Dense networks: parameters in millions, by which the repository names its runs; operations in
// millions, as printed in Tables 4 to 6 of Yan et al. 2020, and worked out by hand from the
// notebook's formulas, to a thousandth. The last row is an output stored in an older version of the
// notebook (commit 9668d5b).
struct DenseTotal {
  const char* preset;
  const char* parameters;  // empty if a row above has it, or the name has another number
  const char* millions;    // empty if not printed
  double operations;
};
inline constexpr DenseTotal kDenseTotals[] = {{"8.3M", "8.3", "17.4", 17427386.758},
                                              {"8.3M-cache1000", "", "17.9", 17941386.758},
                                              {"8.3M-cache2000", "", "18.4", 18455386.758},
                                              {"8.3M-cache3000", "", "", 18969386.758},
                                              {"8.3M-attn65", "8.3", "17.2", 17219770.758},
                                              {"8.3M-attn129", "8.3", "17.6", 17635002.758},
                                              {"8.3M-attn257", "8.3", "18.5", 18465466.758},
                                              {"8.4M-attn513", "8.4", "20.1", 20126394.758},
                                              {"8.5M-attn1025", "8.5", "23.4", 23448250.758},
                                              {"11M", "11", "23.3", 23303994.758},
                                              {"15.2M", "15.2", "31.6", 31586027.658},
                                              {"teacher", "54", "111", 110859933.154},
                                              {"74M", "", "149.019347", 149019347}};

// Printed by the notebooks for the quantised networks.
struct PrintedCount {
  const char* preset;
  int bits;
  double nonzero, total, size, quantisation, total_size;
  double multiplications, additions, others, operations, score;
};
inline constexpr PrintedCount kPrintedCounts[] = {
    {"best", 9, 5326376, 8296021, 1498043.25, 97.96875, 1757391.875, 6301457.193175849,
     6189183.4014525, 845247, 8806715.237033207, 0.038746852160481786},
    {"submission1", 9, 4801977, 8296023, 1350556.03125, 97.96875, 1609904.65625, 5546286.350785319,
     5428300.290974323, 842247, 7830440.3271326935, 0.03474921270324746},
    {"submission2", 9, 4961183, 8296023, 1395332.71875, 97.96875, 1654681.34375, 5690827.81850315,
     5582305.248779895, 842247, 8025097.572733905, 0.03564295679318838},
    {"submission3", 8, 5487556, 8296023, 1371889.0, 99.75, 1631239.40625, 6168904.932279726,
     6091477.687298576, 842247, 8475950.920368508, 0.03691330104675632}};

// Table 2: millions with one decimal. The notebook, the text and the repository's README have 8.8
// where the table has 8.9 for the best network.
struct TableRow {
  const char* preset;
  double size, operations;
};
inline constexpr TableRow kTable2[] = {
    {"0.239-cache2000-8bit", 1.8, 9.5},         {"0.239-cache2000-9bit", 2.0, 9.7},
    {"0.358-cache2000-9bit", 1.8, 8.5},         {"0.358-cache2000-10bit", 1.9, 8.7},
    {"0.358-cache3000-8bit", 1.6, 8.6},         {"best", 1.8, 8.8},
    {"0.358-cache4000-8bit", 1.6, 8.9},         {"0.358-cache4000-9bit", 1.8, 9.1},
    {"0.477-cache2000-9bit", 1.6, 7.5},         {"0.477-cache4000-10bit", 1.7, 8.4},
    {"0.358-attn129-cache2000-9bit", 1.8, 8.6}, {"0.358-attn129-cache2000-10bit", 1.9, 8.8},
    {"0.358-attn129-cache3000-9bit", 1.8, 8.9}, {"0.358-attn257-cache2000-9bit", 1.8, 9.1}};

// Table 3 splits the 8.3 M network's parameters, in millions: the embedding with the projections
// and clusters of the softmax, which the framework groups, and all others.
inline constexpr const char* kEmbeddingMillions = "3.28";
inline constexpr const char* kOtherMillions = "5.02";

// Figure 2 (figures/pipeline.svg of the repository): the pruned network before its quantisation,
// the stored mask included. In millions.
inline constexpr TableRow kPipelinePruned = {"0.358-cache2000", 5.6, 13};

// Compression ratios of Chen, Li & Sun 2020, which print one digit; here with two, from their
// formula. Their table counts one column too many.
struct CodedRatioRow {
  const char* preset;
  double printed, ratio;
};
inline constexpr CodedRatioRow kCodedRatios[] = {
    {"dpq-ptb-small-sx", 85.5, 85.53},   {"dpq-ptb-small-vq", 51.1, 51.12},
    {"dpq-ptb-medium-sx", 82.9, 82.89},  {"dpq-ptb-sx", 163.2, 163.18},
    {"dpq-ptb-large-sx", 238.3, 238.33}, {"dpq-envi-sx", 86.2, 86.17},
    {"dpq-envi-vq", 16.1, 16.13},        {"dpq-vien-sx", 72.0, 72.0},
    {"dpq-vien-vq", 14.1, 14.05},        {"dpq-bert", 37.0, 36.96}};

// Ratios whose shapes are not a preset's. Text classification has 300 columns and the vocabularies
// of the slides; its script tries 16 and 32 choices at 50 and 100 positions, with one pool for all
// positions or one for each. Here is, of the choices that give the printed digits, the one with a
// shared pool where there is one.
struct CodedShapeRow {
  const char* name;
  uint64_t words;
  uint32_t width, choices, positions;
  bool shared;         // one pool for all positions
  double printed;      // 0: of a column that was not at hand
  const char* reason;  // why the digits differ; empty if they agree
};
inline constexpr uint64_t kAgNews = 69322, kYahoo = 477522, kDbpedia = 612530,
                          kYelpPolarity = 246739, kYelpFull = 268414;
inline constexpr CodedShapeRow kCodedShapes[] = {
    {"PTB medium, VQ", 10000, 650, 128, 50, true, 58.7, "the shape nearest to it"},
    {"AG News", kAgNews, 300, 32, 100, true, 19.3, ""},
    {"Yahoo", kYahoo, 300, 16, 50, true, 48.2, ""},
    {"Yelp full", kYelpFull, 300, 16, 50, true, 48.2, ""},
    {"DBpedia", kDbpedia, 300, 16, 100, true, 24.1, ""},
    {"Yelp full", kYelpFull, 300, 16, 100, true, 24.1, ""},
    {"DBpedia", kDbpedia, 300, 32, 50, true, 38.5, ""},
    {"Yelp polarity", kYelpPolarity, 300, 32, 50, true, 38.5, ""},
    {"AG News, a pool for each position", kAgNews, 300, 16, 100, false, 0, ""},
    {"Yahoo, a pool for each position", kYahoo, 300, 32, 100, false, 0, ""},
    {"Yelp polarity, a pool for each", kYelpPolarity, 300, 16, 100, false, 0, ""}};

// Parameters of Slim Embedding's networks (Li et al. 2018, One Billion Words), in millions.
struct SlimTotal {
  const char* preset;
  double millions;
};
inline constexpr SlimTotal kSlimTotals[] = {{"slim-billion-2", 322}, {"slim-billion-3", 254}};

// The fractions of a table's parameters that Slim Embedding keeps on the Penn Treebank, in per
// cent: M sub-vectors for 10,000 words of 10 positions.
struct SlimShare {
  uint32_t units, words, positions, sub_vectors;
  const char* printed;
};
inline constexpr SlimShare kSlimShares[] = {
    {300, 10000, 10, 20000, "20"}, {300, 10000, 10, 10000, "10"}, {300, 10000, 10, 6250, "6.25"},
    {300, 10000, 10, 5000, "5"},   {650, 10000, 10, 10000, "10"}, {650, 10000, 10, 5000, "5"},
    {650, 10000, 10, 1000, "1"}};

}  // namespace kinglet

#endif  // KINGLET_TESTS_SYNTHESIS_PUBLISHED_TOTALS_H_
