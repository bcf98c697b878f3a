#include "runtime/sentence_scorer.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/prefix_tree.h"

namespace kinglet {
namespace {

// A lane's stream, and the tokens scored so far.
struct RunningSentence {
  uint64_t index = 0;
  SentenceStream stream;
  size_t fed = 0;
  std::vector<ScoredToken> scored;
  bool running() const { return fed + 1 < stream.tokens.size(); }
  uint32_t input() const { return stream.tokens[fed]; }
  uint32_t predicted() const { return stream.tokens[fed + 1]; }
  bool asks() const { return fed >= stream.context; }
};

// Passes results to the sink in the order of the streams.
class InOrder {
 public:
  explicit InOrder(const SentenceScorer::Sink& sink) : sink_(sink) {}

  Status Add(uint64_t index, std::vector<ScoredToken> tokens) {
    if (index != next_) {
      waiting_.emplace(index, std::move(tokens));
      return {};
    }
    KINGLET_RETURN_IF_ERROR(sink_(next_++, tokens));
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_;
         first = waiting_.erase(first)) {
      KINGLET_RETURN_IF_ERROR(sink_(next_++, first->second));
    }
    return {};
  }

 private:
  const SentenceScorer::Sink& sink_;
  uint64_t next_ = 0;
  std::map<uint64_t, std::vector<ScoredToken>> waiting_;
};

constexpr size_t kTokensOfCall = 4096;  // of RunInTurn; texts are not divided

Status InSentenceNamed(const std::string& name, const Status& status) {
  return Status(status.code(), name + ": " + status.message());
}

// Calls run(next, sink, name) for streams[i] of the chosen i.
template <class Run>
Status RunChosen(std::span<const SentenceStream> streams, std::span<const size_t> chosen,
                 const SentenceScorer::Sink& sink, const SentenceScorer::Name& name,
                 const Run& run) {
  size_t taken = 0;
  const auto next = [&](SentenceStream& stream) {
    if (taken == chosen.size()) return false;
    stream = streams[chosen[taken++]];
    return true;
  };
  const auto use = [&](uint64_t i, std::span<const ScoredToken> tokens) {
    return sink(chosen[i], tokens);
  };
  return run(next, use, [&](uint64_t i, size_t at) { return name(chosen[i], at); });
}

}  // namespace

SentenceFrame FrameOf(const ModelDescription& description, const Vocabulary* vocabulary) {
  SentenceFrame frame;
  frame.end = description.end_token;
  for (const std::string_view word : {"<eos>", "</s>"}) {
    if (!frame.end && vocabulary != nullptr) frame.end = vocabulary->Find(word);
  }
  frame.begin = description.start_token ? description.start_token : frame.end;
  return frame;
}

std::vector<uint32_t> Framed(const SentenceFrame& frame, std::span<const uint32_t> sentence) {
  std::vector<uint32_t> stream;
  stream.reserve(sentence.size() + 2);
  if (frame.begin) stream.push_back(*frame.begin);
  stream.insert(stream.end(), sentence.begin(), sentence.end());
  if (frame.end) stream.push_back(*frame.end);
  return stream;
}

SentenceStream BlockAt(std::span<const uint32_t> stream, uint64_t at, uint64_t stride,
                       uint64_t context) {
  const uint64_t overlap = std::min(at, context);
  const uint64_t size = std::min<uint64_t>(stream.size() - at, stride + 1) + overlap;
  const auto tokens = stream.subspan(at - overlap, size);
  return {std::nullopt, {tokens.begin(), tokens.end()}, static_cast<size_t>(overlap)};
}

Result<SentenceScorer> SentenceScorer::Create(std::shared_ptr<const Model> model,
                                              const SessionOptions& options) {
  KINGLET_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                           Session::Create(std::move(model), options));
  return SentenceScorer(std::move(session));
}

Status SentenceScorer::Run(const Next& next, const Sink& sink, const Name& name,
                           const PlaceQuestions& questions) {
  std::vector<RunningSentence> sentences(session_->lanes());
  std::vector<uint32_t> lanes, inputs, asked, predicted;  // `asked`: the lanes that score a token
  std::vector<double> values;
  InOrder results(sink);
  uint64_t taken = 0;
  bool more = true;
  // Finds the stream for which a call for all lanes was refused, and names it.
  const auto in_stream = [&](const RunningSentence& sentence, const Status& status) {
    return InSentenceNamed(name(sentence.index, sentence.fed + 1), status);
  };
  const auto predicted_in = [&](uint32_t lane) {
    return session_->model().TokenOf(sentences[lane].predicted());
  };
  const auto in_first = [&](const Status& status) {
    for (const uint32_t lane : asked) {
      const Result<double> one = session_->LogProbability(predicted_in(lane), lane);
      if (!one.ok()) return in_stream(sentences[lane], one.status());
    }
    return status;
  };
  while (true) {
    lanes.clear();
    for (uint32_t lane = 0; lane < sentences.size(); ++lane) {
      RunningSentence& sentence = sentences[lane];
      while (more && !sentence.running()) {
        sentence = RunningSentence{taken, {}, 0, {}};
        more = next(sentence.stream);
        if (!more) {
          sentence = {};  // `next` may have begun to fill it in
          break;
        }
        ++taken;
        if (sentence.running()) {
          KINGLET_RETURN_IF_ERROR(session_->Reset(lane));
          if (!sentence.stream.source) continue;
          const Status encoded = session_->Encode(*sentence.stream.source, lane);
          if (!encoded.ok()) return in_stream(sentence, encoded);
        } else {
          KINGLET_RETURN_IF_ERROR(results.Add(sentence.index, {}));
        }
      }
      if (sentence.running()) lanes.push_back(lane);
    }
    if (lanes.empty()) return {};
    inputs.clear();
    asked.clear();
    predicted.clear();
    for (const uint32_t lane : lanes) {
      inputs.push_back(sentences[lane].input());
      if (!sentences[lane].asks()) continue;
      asked.push_back(lane);
      predicted.push_back(predicted_in(lane));
    }
    KINGLET_RETURN_IF_ERROR(session_->StepLanes(lanes, inputs));
    values.resize(asked.size());
    const Status status = session_->LogProbabilityLanes(asked, predicted, values);
    if (!status.ok()) return in_first(status);
    for (size_t i = 0; i < asked.size(); ++i) {
      RunningSentence& sentence = sentences[asked[i]];
      const Result<TokenPlace> place = AskForPlace(questions, predicted[i], *session_, asked[i]);
      if (!place.ok()) return in_stream(sentence, place.status());
      sentence.scored.push_back({values[i], *place});
    }
    for (const uint32_t lane : lanes) {
      RunningSentence& sentence = sentences[lane];
      ++sentence.fed;
      if (sentence.running()) continue;
      KINGLET_RETURN_IF_ERROR(results.Add(sentence.index, std::move(sentence.scored)));
      sentence = {};
    }
  }
}

Status SentenceScorer::RunInTurn(const Next& next, const Sink& sink, const Name& name) {
  std::vector<SentenceStream> streams;
  std::vector<ScoredText> texts;
  std::vector<double> values;
  std::vector<ScoredToken> scored;
  uint64_t index = 0;
  for (bool more = true; more;) {
    streams.clear();
    texts.clear();
    size_t tokens = 0, taken = 0;
    while (more && tokens < kTokensOfCall) {
      SentenceStream stream;
      more = next(stream);
      if (!more) break;
      tokens += stream.tokens.size();
      streams.push_back(std::move(stream));
    }
    values.resize(tokens);
    for (const SentenceStream& stream : streams) {
      const size_t all = stream.tokens.size(), asked = all - std::min(all, stream.context + 1);
      texts.push_back({stream.tokens, stream.context, std::span(values).subspan(taken, asked)});
      taken += asked;
    }
    TextProgress done;
    const Status status = session_->ScoreTexts(texts, done);
    for (const ScoredText& text : std::span(texts).first(done.texts)) {
      scored.clear();
      for (const double value : text.log_probabilities) scored.push_back({value, {}});
      KINGLET_RETURN_IF_ERROR(sink(index++, scored));
    }
    if (!status.ok()) return InSentenceNamed(name(index, done.tokens + 1), status);
  }
  return {};
}

Status SentenceScorer::RunInLanes(std::span<const SentenceStream> streams,
                                  std::span<const size_t> chosen, const Sink& sink,
                                  const Name& name) {
  return RunChosen(streams, chosen, sink, name,
                   [this](const auto&... of_all) { return Run(of_all...); });
}

Status SentenceScorer::RunInTurn(std::span<const SentenceStream> streams,
                                 std::span<const size_t> chosen, const Sink& sink,
                                 const Name& name) {
  return RunChosen(streams, chosen, sink, name,
                   [this](const auto&... of_all) { return RunInTurn(of_all...); });
}

Status SentenceScorer::RunAsTree(std::span<const SentenceStream> streams,
                                 std::span<const size_t> chosen, const Sink& sink,
                                 const Name& name) {
  PrefixTreeBuilder builder;
  std::vector<std::vector<uint32_t>> nodes;  // of each chosen stream's tokens
  nodes.reserve(chosen.size());
  for (const size_t i : chosen) nodes.push_back(builder.Add(streams[i].tokens));
  const PrefixTree& tree = builder.tree();
  std::vector<double> values(tree.size());
  const Result<uint64_t> scored = ScoreTree(tree.parents, tree.ids, *session_, values);
  // The error of one stream alone says which it is.
  if (!scored.ok()) return RunInLanes(streams, chosen, sink, name);
  std::vector<ScoredToken> tokens;
  for (size_t i = 0; i < chosen.size(); ++i) {
    tokens.clear();
    for (size_t at = streams[chosen[i]].context + 1; at < nodes[i].size(); ++at) {
      tokens.push_back({values[nodes[i][at]], {}});
    }
    KINGLET_RETURN_IF_ERROR(sink(chosen[i], tokens));
  }
  return {};
}

}  // namespace kinglet
