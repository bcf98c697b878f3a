#include "tools/prediction_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "tools/token_text.h"

namespace kinglet {
namespace {

constexpr size_t kTokenColumns = 16;
constexpr size_t kWordColumns = 12;
constexpr size_t kBarColumns = 4;
constexpr size_t kLeadColumns =
    6 + 2 + kTokenColumns + 1 + 7 + 1 + 5;  // before the predicted words
// Two spaces, bar, space, word, space, percentage.
constexpr size_t kCellColumns = 2 + kBarColumns + 1 + kWordColumns + 1 + 5;

// Select Graphic Rendition sequences (ECMA-48, 8.3.117).
constexpr const char* kGreen = "\x1b[1;32m";
constexpr const char* kRed = "\x1b[31m";
constexpr const char* kDim = "\x1b[2m";
constexpr const char* kPlain = "\x1b[0m";

std::string Percentage(double probability, int columns, int decimals) {
  char text[32];
  std::snprintf(text, sizeof(text), "%*.*f%%", columns - 1, decimals, 100.0 * probability);
  return text;
}

std::string Padded(std::string text, size_t columns) {
  if (text.size() < columns) text.insert(0, columns - text.size(), ' ');
  return text;
}

}  // namespace

std::optional<size_t> RankOf(uint32_t id, const std::vector<Candidate>& prediction) {
  for (size_t rank = 0; rank < prediction.size(); ++rank) {
    if (prediction[rank].id == id) return rank;
  }
  return std::nullopt;
}

void PredictionTally::Add(const ObservedToken& token,
                          const std::vector<Candidate>& predicted_words) {
  ++tokens;
  if (!token.log_probability) return;
  ++predicted;
  log_probability += *token.log_probability;
  top = std::max(top, predicted_words.size());
  const std::optional<size_t> rank = RankOf(token.id, predicted_words);
  if (rank == 0) ++first;
  if (rank) ++among_top;
}

std::string PredictionView::Coloured(const char* sequence, const std::string& text) const {
  return console_.colours ? sequence + text + kPlain : text;
}

std::string PredictionView::Word(uint32_t id) const {
  return vocabulary_ == nullptr ? std::to_string(id) : vocabulary_->Word(id);
}

// Draws eighths of a column if the locale is UTF-8.
std::string PredictionView::Bar(double probability) const {
  static constexpr std::array<const char*, 9> kEighths = {" ", "▏", "▎", "▍", "▌",
                                                          "▋", "▊", "▉", "█"};
  const double share = std::clamp(probability, 0.0, 1.0);
  std::string bar;
  for (size_t column = 0; column < kBarColumns; ++column) {
    const double filled = std::clamp(share * kBarColumns - static_cast<double>(column), 0.0, 1.0);
    if (console_.utf8) {
      bar += kEighths[static_cast<size_t>(std::lround(8.0 * filled))];
    } else {
      bar += filled >= 0.5 ? '#' : ' ';
    }
  }
  return bar;
}

std::string PredictionView::Words(const std::vector<TextCompletion>& words,
                                  std::optional<size_t> highlighted, size_t used) const {
  std::string line;
  for (size_t rank = 0; rank < words.size(); ++rank) {
    used += kCellColumns;
    if (console_.columns > 0 && used > console_.columns && rank > 0) break;
    const double probability = std::exp(words[rank].log_probability);
    const std::string word =
        FittedText(words[rank].text, kWordColumns) + ' ' + Percentage(probability, 5, 1);
    line += "  " + Coloured(kDim, Bar(probability)) + ' ';
    line += rank == highlighted ? Coloured(kGreen, word) : word;
  }
  return line;
}

std::string PredictionView::Words(const std::vector<Candidate>& prediction,
                                  std::optional<size_t> highlighted, size_t used) const {
  std::vector<TextCompletion> words;
  for (const Candidate& word : prediction) words.push_back({Word(word.id), word.log_probability});
  return Words(words, highlighted, used);
}

std::string PredictionView::TokenLine(const ObservedToken& token,
                                      const std::vector<Candidate>& prediction) const {
  const std::optional<size_t> rank = RankOf(token.id, prediction);
  std::string line = Coloured(kDim, Padded(std::to_string(token.position), 6)) + "  ";
  const std::string shown =
      token.typed.empty() ? Word(token.id) : Word(token.id) + ' ' + std::string(token.typed);
  const std::string word = FittedText(shown, kTokenColumns);
  if (!token.log_probability) {
    line += word + ' ' + Padded("-", 7) + ' ' + Padded("-", 5);
  } else {
    line += Coloured(rank ? kGreen : kRed, word) + ' ';
    line += Percentage(std::exp(*token.log_probability), 7, 2) + ' ';
    line +=
        Padded(rank ? "#" + std::to_string(*rank + 1) : ">" + std::to_string(prediction.size()), 5);
  }
  return line + Words(prediction, rank, kLeadColumns) + '\n';
}

namespace {
std::string PendingLead() {
  return Padded("", 6) + "  " + FittedText("?", kTokenColumns) +
         Padded("", kLeadColumns - 8 - kTokenColumns);
}
}  // namespace

std::string PredictionView::PendingLine(const std::vector<Candidate>& prediction) const {
  return PendingLead() + Words(prediction, std::nullopt, kLeadColumns) + '\n';
}

std::string PredictionView::CompletionsLine(const std::vector<TextCompletion>& words) const {
  return PendingLead() + Words(words, std::nullopt, kLeadColumns) + '\n';
}

std::string PredictionView::Summary(const PredictionTally& tally) const {
  std::string text = Grouped(tally.tokens) + (tally.tokens == 1 ? " token" : " tokens");
  char part[160];
  if (tally.predicted > 0) {
    const auto predicted = static_cast<double>(tally.predicted);
    std::snprintf(part, sizeof(part),
                  ", perplexity %.5g, next word first in %.1f%%, among the top %zu in %.1f%%",
                  std::exp(-tally.log_probability / predicted),
                  100.0 * static_cast<double>(tally.first) / predicted, tally.top,
                  100.0 * static_cast<double>(tally.among_top) / predicted);
    text += part;
  }
  std::snprintf(part, sizeof(part), ", %.0f us per token\n",
                1e6 * tally.seconds / static_cast<double>(std::max<uint64_t>(tally.tokens, 1)));
  return text + part;
}

}  // namespace kinglet
