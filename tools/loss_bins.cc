#include "tools/loss_bins.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "converters/checkpoints/text_input.h"
#include "converters/texts/word_list.h"
#include "converters/texts/word_splitter.h"
#include "format/input_file.h"
#include "format/message_text.h"
#include "runtime/text/white_space.h"
#include "tools/arguments.h"

namespace kinglet {
namespace {

struct CountedWord {
  std::string_view word;
  uint64_t count = 0;
};

// "word count", with the count after the last white space; a word may contain a space.
std::optional<CountedWord> ParseCount(std::string_view line) {
  while (!line.empty() && IsAsciiSpace(line.back())) line.remove_suffix(1);
  const auto digits = std::find_if(line.rbegin(), line.rend(), IsAsciiSpace);
  if (digits == line.rend()) return std::nullopt;
  const auto at = static_cast<size_t>(line.rend() - digits);
  CountedWord counted{line.substr(0, at - 1), 0};
  const char* const end = line.data() + line.size();
  const auto parsed = std::from_chars(line.data() + at, end, counted.count);
  if (parsed.ec != std::errc() || parsed.ptr != end || counted.word.empty()) return std::nullopt;
  return counted;
}

}  // namespace

std::string LossBin::Range() const {
  if (kind == Kind::kNever) return "never before";
  if (kind == Kind::kUnknown) return "unknown";
  if (!to) return std::to_string(from) + " and more";
  return from == *to ? std::to_string(from) : std::to_string(from) + "-" + std::to_string(*to);
}

void BeginBinLine(const std::string& by, const LossBin& bin, JsonLine& line) {
  line.Key("by").Text(by);
  if (bin.kind == LossBin::Kind::kUnknown) {
    line.Key("unknown").Boolean(true);
  } else {
    line.Key("from").Integer(bin.from).Key("to");
    bin.to ? line.Integer(*bin.to) : line.Null();
  }
  line.Key("tokens").Integer(bin.tokens);
}

std::string LossBinJson(const std::string& by, const LossBin& bin, int digits) {
  JsonLine line(digits);
  BeginBinLine(by, bin, line);
  line.Key("nll").Number(bin.nll());
  if (std::isinf(bin.nll())) line.Key("impossible").Boolean(true);
  return line.Finish();
}

FrequencyBins::FrequencyBins(std::vector<uint32_t> rank_of)
    : rank_of_(std::move(rank_of)), words_(rank_of_.size()) {}

void FrequencyBins::Add(uint32_t id, double logprob) {
  Word& word = words_[rank_of_[id]];
  ++word.tokens;
  word.logprob.Add(logprob);
}

std::vector<LossBin> FrequencyBins::Bins() const {
  uint64_t all = 0;
  for (const Word& word : words_) all += word.tokens;
  std::vector<LossBin> bins;
  uint64_t before = 0, open = 0;  // tokens of more frequent words; the tenth of the last bin
  for (uint64_t rank = 0; rank < words_.size(); ++rank) {
    const Word& word = words_[rank];
    if (word.tokens == 0) continue;
    const uint64_t tenth = before * kBins / all;
    if (bins.empty() || tenth != open) {
      const uint64_t from = bins.empty() ? 0 : *bins.back().to + 1;
      bins.push_back({from, rank, 0, ExactSum()});
      open = tenth;
    }
    bins.back().to = rank;
    bins.back().tokens += word.tokens;
    bins.back().logprob.Add(word.logprob.Value());
    before += word.tokens;
  }
  if (!bins.empty()) bins.back().to = words_.size() - 1;
  return bins;
}

CountBins::CountBins(std::vector<uint64_t> counts, std::vector<uint64_t> begins,
                     std::optional<uint32_t> unknown)
    : counts_(std::move(counts)), begins_(std::move(begins)), unknown_(unknown) {
  bins_.resize(begins_.size() + 2);
  for (size_t i = 0; i <= begins_.size(); ++i) {
    bins_[i].from = i == 0 ? 0 : begins_[i - 1];
    if (i < begins_.size()) bins_[i].to = begins_[i] - 1;
  }
  bins_.back().kind = LossBin::Kind::kUnknown;
}

void CountBins::Add(uint32_t id, double logprob) {
  const auto above = std::upper_bound(begins_.begin(), begins_.end(), counts_[id]);
  LossBin& bin =
      id == unknown_ ? bins_.back() : bins_[static_cast<size_t>(above - begins_.begin())];
  ++bin.tokens;
  bin.logprob.Add(logprob);
}

std::vector<LossBin> CountBins::Bins() const {
  std::vector<LossBin> bins = bins_;
  std::erase_if(bins, [](const LossBin& bin) { return bin.tokens == 0; });
  return bins;
}

Result<std::vector<uint64_t>> ParseBins(const std::string& text) {
  const Result<std::vector<uint64_t>> begins = ParseCounts("--bins", text);
  const auto ascends = [](const std::vector<uint64_t>& counts) {
    return counts.front() > 0 &&
           std::adjacent_find(counts.begin(), counts.end(), std::greater_equal<>()) == counts.end();
  };
  if (begins.ok() && ascends(*begins)) return begins;
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--bins",
                         "ascending counts above 0, such as 10,100,1000", Quoted(text));
}

uint64_t& GapBins::Last(uint32_t id) {
  if (id >= last_.size()) last_.resize(uint64_t{id} + 1);
  return last_[id];
}

void GapBins::Add(uint32_t id, double logprob) {
  const uint64_t last = std::exchange(Last(id), ++position_);
  const bool occurred = last > text_begin_;
  Bin& bin = occurred ? bins_[static_cast<size_t>(std::bit_width(position_ - last)) - 1] : never_;
  ++bin.tokens;
  bin.logprob.Add(logprob);
}

std::vector<LossBin> GapBins::Bins() const {
  std::vector<LossBin> bins;
  uint64_t beyond = 1;
  for (size_t i = 0; i < bins_.size(); ++i) {
    if (bins_[i].tokens == 0) continue;
    const uint64_t from = uint64_t{1} << i;
    bins.push_back({from, from + (from - 1), bins_[i].tokens, bins_[i].logprob});
    beyond = from + from;
  }
  if (never_.tokens > 0) {
    bins.push_back({beyond, std::nullopt, never_.tokens, never_.logprob, LossBin::Kind::kNever});
  }
  return bins;
}

std::vector<uint32_t> RanksByOrder(uint32_t vocabulary_size) {
  std::vector<uint32_t> ranks(vocabulary_size);
  std::iota(ranks.begin(), ranks.end(), 0U);
  return ranks;
}

Result<std::vector<std::pair<std::string, uint64_t>>> ReadCounts(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path));
  if (const auto list = ReadWordList(path, text); list.ok() && list->form == WordList::Form::kIds) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, path, Numbered("line", 1),
                           "a word and its count",
                           "a word and its id in all lines (count the words of a text)");
  }
  std::vector<std::pair<std::string, uint64_t>> counts;
  uint64_t number = 0;
  for (const std::string_view line : LinesOf(text)) {
    ++number;
    if (std::all_of(line.begin(), line.end(), IsAsciiSpace)) continue;
    const std::optional<CountedWord> counted = ParseCount(line);
    if (!counted) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, path, Numbered("line", number),
                             "a word and its count",
                             Quoted(line) + " (write \"word count\" in each line)");
    }
    counts.emplace_back(counted->word, counted->count);
  }
  return counts;
}

Result<std::vector<uint64_t>> CountsOfWords(const std::string& path, const Vocabulary& vocabulary) {
  KINGLET_ASSIGN_OR_RETURN(const auto lines, ReadCounts(path));
  std::vector<uint64_t> counts(vocabulary.size());
  uint64_t known = 0;
  for (const auto& [word, count] : lines) {
    std::optional<uint32_t> id = vocabulary.Find(word);
    if (!id) id = vocabulary.Find(word.substr(0, word.find_last_not_of(" \t") + 1));
    if (!id) continue;
    ++known;
    const uint64_t headroom = std::numeric_limits<uint64_t>::max() - counts[*id];
    counts[*id] += std::min(headroom, count);
  }
  if (!lines.empty() && known == 0) {
    return Status::Refusal(
        KINGLET_UNKNOWN_WORD, path, "words", "at least one of the model's",
        "none (count the words of a text that is tokenized as the model's texts are)");
  }
  return counts;
}

std::vector<uint32_t> RanksByCounts(const std::vector<uint64_t>& counts) {
  std::vector<uint32_t> ids(counts.size());
  std::iota(ids.begin(), ids.end(), 0U);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](uint32_t a, uint32_t b) { return counts[a] > counts[b]; });
  std::vector<uint32_t> ranks(counts.size());
  for (uint32_t rank = 0; rank < ids.size(); ++rank) ranks[ids[rank]] = rank;
  return ranks;
}

}  // namespace kinglet
