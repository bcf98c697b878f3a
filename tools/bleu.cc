#include "tools/bleu.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "runtime/text/white_space.h"

namespace kinglet {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsPoint(char c) { return c == '.' || c == ','; }

// Punctuation that always stands alone: all of ASCII but the apostrophe, the comma, the dash and
// the period.
bool IsSymbol(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

// Writes each pair of neighbouring bytes for which `matches` holds as `write` says, from left to
// right without overlaps. Bytes of characters beyond ASCII are no digits and no punctuation, so
// that pairs of bytes stand for pairs of characters.
template <class Matches, class Write>
std::string ReplacePairs(const std::string& text, const Matches& matches, const Write& write) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && matches(text[i], text[i + 1])) {
      out += write(text[i], text[i + 1]);
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

using Counts = std::unordered_map<std::string, uint64_t>;

// The sequences of n tokens; no token has a space.
Counts NGrams(const std::vector<std::string>& tokens, size_t n) {
  Counts counts;
  for (size_t first = 0; first + n <= tokens.size(); ++first) {
    std::string key;
    for (size_t i = 0; i < n; ++i) key += tokens[first + i] + " ";
    ++counts[key];
  }
  return counts;
}

}  // namespace

std::vector<std::string> Tokens13a(std::string_view text) {
  std::string line(text);
  ReplaceAll(line, "<skipped>", "");
  ReplaceAll(line, "&quot;", "\"");
  ReplaceAll(line, "&amp;", "&");
  ReplaceAll(line, "&lt;", "<");
  ReplaceAll(line, "&gt;", ">");
  std::string spaced = " ";
  for (const char c : line) {
    spaced += IsSymbol(c) ? std::string{' ', c, ' '} : std::string(1, c);
  }
  spaced += " ";
  spaced = ReplacePairs(
      spaced, [](char a, char b) { return !IsDigit(a) && IsPoint(b); },
      [](char a, char b) {
        return std::string{a, ' ', b, ' '};
      });
  spaced = ReplacePairs(
      spaced, [](char a, char b) { return IsPoint(a) && !IsDigit(b); },
      [](char a, char b) {
        return std::string{' ', a, ' ', b};
      });
  spaced = ReplacePairs(
      spaced, [](char a, char b) { return IsDigit(a) && b == '-'; },
      [](char a, char b) {
        return std::string{a, ' ', b, ' '};
      });
  std::vector<std::string> tokens;
  bool inside = false;
  for (std::string_view rest = spaced; !rest.empty();) {
    const size_t space = SpaceLength(rest);
    if (space == 0) {
      if (!inside) tokens.emplace_back();
      tokens.back() += rest.front();
    }
    inside = space == 0;
    rest.remove_prefix(std::max<size_t>(space, 1));
  }
  return tokens;
}

void Bleu::Add(std::string_view translation, std::string_view reference) {
  const std::vector<std::string> tokens = Tokens13a(translation), wanted = Tokens13a(reference);
  ++sentences_;
  tokens_ += tokens.size();
  reference_tokens_ += wanted.size();
  for (size_t n = 1; n <= all_.size(); ++n) {
    const Counts counts = NGrams(tokens, n), allowed = NGrams(wanted, n);
    for (const auto& [ngram, count] : counts) {
      all_[n - 1] += count;
      const auto found = allowed.find(ngram);
      if (found != allowed.end()) right_[n - 1] += std::min(count, found->second);
    }
  }
}

BleuFigures Bleu::Figures() const {
  BleuFigures figures;
  figures.tokens = tokens_;
  figures.reference_tokens = reference_tokens_;
  if (tokens_ < reference_tokens_) {
    figures.brevity_penalty =
        tokens_ == 0
            ? 0
            : std::exp(1 - static_cast<double>(reference_tokens_) / static_cast<double>(tokens_));
  }
  if (right_[0] == 0) return figures;  // then no longer sequence is right either
  double logarithms = 0, smoothing = 1;
  for (size_t i = 0; i < all_.size(); ++i) {
    const auto all = static_cast<double>(all_[i]);
    if (all_[i] == 0) return figures;  // all translations are shorter
    if (right_[i] == 0) smoothing *= 2;
    figures.precisions[i] =
        right_[i] == 0 ? 100 / (smoothing * all) : 100 * static_cast<double>(right_[i]) / all;
    logarithms += std::log(figures.precisions[i]);
  }
  figures.bleu = figures.brevity_penalty * std::exp(logarithms / static_cast<double>(all_.size()));
  return figures;
}

}  // namespace kinglet
