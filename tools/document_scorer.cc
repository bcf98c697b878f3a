#include "tools/document_scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "converters/texts/text_reader.h"
#include "format/message_text.h"
#include "runtime/special_tokens.h"
#include "tools/loss_totals.h"
#include "tools/words.h"

namespace kinglet {

double DocumentLoss::perplexity() const { return std::exp(nll()); }

double RankOf(const DocumentLoss& loss, RankBy by) {
  const double spelt = loss.sum + loss.spelling;
  switch (by) {
    case RankBy::kBitsPerByte:
      return InBits(spelt / static_cast<double>(loss.size.bytes));
    case RankBy::kWordPerplexity:
      return std::exp(spelt / static_cast<double>(loss.size.words));
    case RankBy::kKnownPerplexity:
      if (loss.unknown == loss.scored || std::isinf(loss.sum)) {
        return std::numeric_limits<double>::infinity();
      }
      return std::exp((loss.sum - loss.unknown_sum) /
                      static_cast<double>(loss.scored - loss.unknown));
    case RankBy::kPerplexity:
      break;
  }
  return loss.perplexity();
}

DocumentScorer::DocumentScorer(std::shared_ptr<const Model> model, SentenceScorer scorer,
                               const DocumentBlocks& blocks)
    : model_(std::move(model)),
      scorer_(std::move(scorer)),
      frame_(FrameOf(model_->file().description(), model_->vocabulary())),
      unknown_(UnknownToken(*model_->vocabulary(), model_->text())),
      marks_(PieceMarksOf(*model_->vocabulary())),
      blocks_(blocks) {}

Result<DocumentScorer> DocumentScorer::Create(const std::shared_ptr<const Model>& model,
                                              const RunOptions& run, const DocumentBlocks& blocks) {
  KINGLET_RETURN_IF_ERROR(RequireWords(run.model, model->text()));
  const std::optional<uint32_t> positions = PositionsOf(model->file().description());
  if (blocks.block && !positions) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "filter", "--block",
                           "none, as this model takes documents of any length",
                           std::to_string(*blocks.block));
  }
  DocumentBlocks chosen = blocks;
  if (positions && !chosen.block) chosen.block = *positions;
  if (positions && *chosen.block > *positions) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "filter", "--block",
                           "at most " + std::to_string(*positions) + ", the model's positions",
                           std::to_string(*chosen.block));
  }
  if (chosen.block && chosen.context >= *chosen.block) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "filter", "--context",
                           "less than the block's " + std::to_string(*chosen.block) + " tokens",
                           std::to_string(chosen.context));
  }
  SessionOptions options;
  options.empty_cache = EmptyCache::kNormalised;
  options.lanes = static_cast<uint32_t>(run.lanes);
  options.threads = static_cast<uint32_t>(run.threads);
  KINGLET_ASSIGN_OR_RETURN(SentenceScorer scorer, SentenceScorer::Create(model, options));
  return DocumentScorer(model, std::move(scorer), chosen);
}

double DocumentScorer::SpellingOf(std::string_view word) {
  if (!letters_) {
    typing::WordList words;
    model_->vocabulary()->ForEachWithPrefix(
        "", [&](uint32_t id, std::string_view text) { words.Add(typing::LowerLetters(text), id); });
    letters_.emplace(words);
  }
  return -letters_->LogProbability(typing::LowerLetters(word));
}

Result<std::vector<uint32_t>> DocumentScorer::StreamOf(const std::string& input_name,
                                                       const Document& document,
                                                       DocumentLoss& loss) {
  TextReader reader(*model_->text(), input_name + ", " + Numbered("line", document.line_number), {},
                    marks_);
  TokenSequence tokens;
  KINGLET_RETURN_IF_ERROR(reader.AddText(document.text, tokens));
  loss.size = tokens.size.value_or(SizeOfLine(document.text));
  loss.size += kEndOfLineSize;
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    if (tokens.ids[i] != unknown_) continue;
    const std::string_view typed = tokens.typed.At(i);
    if (!typed.empty()) loss.spelling += SpellingOf(typed);
  }
  KINGLET_ASSIGN_OR_RETURN(const std::vector<uint32_t> inputs, InputsOf(*model_, tokens));
  return Framed(frame_, inputs);
}

void DocumentScorer::Omit(const std::vector<uint32_t>& stream, DocumentLoss& loss) const {
  for (size_t i = 1; i < stream.size(); ++i) {
    ++loss.scored;
    loss.unknown += unknown_ && model_->TokenOf(stream[i]) == *unknown_ ? 1 : 0;
  }
  loss.sum = std::numeric_limits<double>::infinity();
}

Result<std::vector<DocumentLoss>> DocumentScorer::Score(const std::string& input_name,
                                                        std::span<const Document> documents,
                                                        const Omits& omits) {
  std::vector<DocumentLoss> losses(documents.size());
  std::vector<SentenceStream> streams;  // the documents' blocks
  std::vector<size_t> owners;           // the document of each block
  for (size_t document = 0; document < documents.size(); ++document) {
    KINGLET_ASSIGN_OR_RETURN(const std::vector<uint32_t> stream,
                             StreamOf(input_name, documents[document], losses[document]));
    if (omits(documents[document])) {
      Omit(stream, losses[document]);
      continue;
    }
    const uint64_t stride = blocks_.block ? *blocks_.block - blocks_.context : stream.size();
    for (uint64_t at = 0; at + 1 < stream.size(); at += stride) {
      streams.push_back(BlockAt(stream, at, stride, blocks_.context));
      owners.push_back(document);
    }
  }
  std::vector<DocumentLoss> of_blocks(streams.size());
  const auto sink = [&](uint64_t index, std::span<const ScoredToken> tokens) -> Status {
    DocumentLoss& loss = of_blocks[index];
    const SentenceStream& block = streams[index];
    for (size_t i = 0; i < tokens.size(); ++i) {
      loss.sum -= tokens[i].log_probability;
      ++loss.scored;
      const uint32_t predicted = block.tokens[block.context + 1 + i];
      if (!unknown_ || model_->TokenOf(predicted) != *unknown_) continue;
      ++loss.unknown;
      loss.unknown_sum -= tokens[i].log_probability;
    }
    report_(scored_ += tokens.size());
    return {};
  };
  const auto name = [&](uint64_t index, size_t /*at*/) {
    return input_name + ", " + Numbered("line", documents[owners[index]].line_number);
  };
  KINGLET_RETURN_IF_ERROR(scorer_.Run(streams, sink, name));
  for (size_t i = 0; i < streams.size(); ++i) {  // in order: a sum of doubles depends on it
    DocumentLoss& loss = losses[owners[i]];
    loss.scored += of_blocks[i].scored;
    loss.unknown += of_blocks[i].unknown;
    loss.sum += of_blocks[i].sum;
    loss.unknown_sum += of_blocks[i].unknown_sum;
  }
  return losses;
}

}  // namespace kinglet
