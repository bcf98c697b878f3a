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
  return options.bins.empty() ? Status() : ParseBins(options.bins).status();
}

TextBins::TextBins(const Model& model)
    : begin_(FrameOf(model.file().description(), model.vocabulary()).begin), previous_(begin_) {}

Result<TextBins> TextBins::Create(const BinOptions& options, const Model& model) {
  TextBins bins(model);
  bins.by_previous_ = options.by == "previous";
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

void TextBins::BeginText() {
  previous_ = begin_;
  if (gaps_) gaps_->BeginText();
}

void TextBins::Skip(uint32_t id) {
  previous_ = id;
  if (gaps_) gaps_->Skip(id);
}

void TextBins::Add(uint32_t id, double logprob) {
  if (gaps_) gaps_->Add(id, logprob);
  const std::optional<uint32_t> counted = by_previous_ ? previous_ : id;
  if (frequency_ && counted) frequency_->Add(*counted, logprob);
  if (counted_ && counted) counted_->Add(*counted, logprob);
  previous_ = id;
}

std::vector<LossBin> TextBins::Bins() const {
  if (frequency_) return frequency_->Bins();
  return counted_ ? counted_->Bins() : gaps_->Bins();
}

}  // namespace kinglet
