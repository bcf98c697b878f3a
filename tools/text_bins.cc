#include "tools/text_bins.h"

#include <utility>

#include "runtime/sentence_scorer.h"
#include "runtime/special_tokens.h"

namespace kinglet {

void AddBinOptions(Arguments& arguments, BinOptions& options) {
  arguments
      .Add("--by", options.by,
           "mean loss in bins: ten of equally many tokens by frequency rank (the vocabulary's "
           "order or --counts), by that of the word before, or by distance to the word's last "
           "occurrence")
      .OneOf({"frequency", "previous", "gap"});
  Option counts = arguments.Add("--counts", options.counts,
                                "how frequent words are: a line \"word count\" for each");
  counts.Placeholder("FILE");
  arguments
      .Add(
          "--bins", options.bins,
          "bins of words that are counted fewer than A times, A to B - 1, .., and the unknown word")
      .Needs(counts)
      .Placeholder("A,B,..");
}

Status CheckBinOptions(const BinOptions& options) {
  const bool by_counts = options.by == "frequency" || options.by == "previous";
  if (!options.counts.empty() && !by_counts) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--counts",
                           "--by frequency or --by previous with it",
                           options.by.empty() ? "none" : options.by);
  }
  if (options.whole_words && (options.by.empty() || (by_counts && options.counts.empty()))) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--whole-words",
                           "--by gap, or --by and --counts with it",
                           options.by.empty() ? "neither" : "--by " + options.by);
  }
  return options.bins.empty() ? Status() : ParseBins(options.bins).status();
}

TextBins::TextBins(const Model& model)
    : end_of_line_(SpecialTokensOf(model).end_of_line),
      begin_(FrameOf(model.file().description(), model.vocabulary()).begin),
      previous_(begin_) {}

Result<TextBins> TextBins::Create(const BinOptions& options, const Model& model) {
  TextBins bins(model);
  bins.by_previous_ = options.by == "previous";
  if (options.whole_words) {
    KINGLET_RETURN_IF_ERROR(bins.ReadWholeWords(options, model));
    return bins;
  }
  if (options.by == "gap") {
    bins.gaps_.emplace(model.vocabulary_size());
  } else if (options.counts.empty()) {
    bins.frequency_.emplace(RanksByOrder(model.vocabulary_size()));
  } else if (model.vocabulary() == nullptr) {
    return Status::Refusal(KINGLET_UNSUPPORTED, options.counts, "words",
                           "a model with a vocabulary (or ranks by id, without --counts)",
                           "a model that has ids only");
  } else {
    KINGLET_ASSIGN_OR_RETURN(std::vector<uint64_t> counts,
                             CountsOfWords(options.counts, *model.vocabulary()));
    if (options.bins.empty()) {
      bins.frequency_.emplace(RanksByCounts(counts));
    } else {
      KINGLET_ASSIGN_OR_RETURN(std::vector<uint64_t> begins, ParseBins(options.bins));
      bins.counted_.emplace(std::move(counts), std::move(begins), SpecialTokensOf(model).unknown);
    }
  }
  return bins;
}

Status TextBins::ReadWholeWords(const BinOptions& options, const Model& model) {
  begin_.reset();  // no word stands before a text
  previous_.reset();
  KINGLET_ASSIGN_OR_RETURN(words_, WholeWords::Create(model));
  if (options.by == "gap") {
    gaps_.emplace(0);
    return Status();
  }
  KINGLET_ASSIGN_OR_RETURN(const auto lines, ReadCounts(options.counts));
  std::vector<uint64_t> counts;
  for (const auto& [word, count] : lines) {
    const std::string trimmed = word.substr(0, word.find_last_not_of(" \t") + 1);
    const auto [at, is_new] = numbers_.emplace(trimmed, static_cast<uint32_t>(counts.size()));
    if (is_new) counts.push_back(0);
    counts[at->second] += count;
  }
  uncounted_ = static_cast<uint32_t>(counts.size());
  counts.push_back(0);
  if (options.bins.empty()) {
    frequency_.emplace(RanksByCounts(counts));
    return Status();
  }
  KINGLET_ASSIGN_OR_RETURN(std::vector<uint64_t> begins, ParseBins(options.bins));
  counted_.emplace(std::move(counts), std::move(begins), std::nullopt);
  return Status();
}

void TextBins::BeginText() {
  if (words_) AddWord(words_->Finish());
  previous_ = begin_;
  if (gaps_) gaps_->BeginText();
}

void TextBins::Skip(uint32_t id) { words_ ? AddPart(id, nullptr, {}) : SkipNumber(id); }

void TextBins::Add(uint32_t id, double logprob, std::string_view typed) {
  if (!words_) return AddNumber(id, logprob);
  const ScoredToken scored{logprob, {}};
  AddPart(id, &scored, typed);
}

void TextBins::AddPart(uint32_t id, const ScoredToken* scored, std::string_view typed) {
  AddWord(words_->Add(id, scored, typed));
  if (id == end_of_line_) AddWord(words_->Finish());
}

void TextBins::AddWord(const std::optional<WholeWord>& word) {
  if (!word) return;
  const auto found = numbers_.find(word->text);
  uint32_t number = 0;
  if (found != numbers_.end()) {
    number = found->second;
  } else if (uncounted_) {
    number = *uncounted_;
  } else {
    number = static_cast<uint32_t>(numbers_.size());
    numbers_.emplace(word->text, number);
  }
  word->log_probability ? AddNumber(number, *word->log_probability) : SkipNumber(number);
}

void TextBins::SkipNumber(uint32_t number) {
  previous_ = number;
  if (gaps_) gaps_->Skip(number);
}

void TextBins::AddNumber(uint32_t number, double logprob) {
  if (gaps_) gaps_->Add(number, logprob);
  const std::optional<uint32_t> counted = by_previous_ ? previous_ : number;
  if (frequency_ && counted) frequency_->Add(*counted, logprob);
  if (counted_ && counted) counted_->Add(*counted, logprob);
  previous_ = number;
}

std::vector<LossBin> TextBins::Bins() {
  if (words_) AddWord(words_->Finish());
  if (frequency_) return frequency_->Bins();
  return counted_ ? counted_->Bins() : gaps_->Bins();
}

}  // namespace kinglet
