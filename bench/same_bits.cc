// Scores a random text in one way and writes every score; bench/same_bits_check compares them with
// other ways. The program is built without the converters too, for machines of another kind.
//
//   same_bits MODEL OUT [tokens=5000] [backend=cpu|ref|emulated|cuda] [threads=1] [lanes=1]
//             [restore=0] [write=PREFIX] [read=PREFIX] [together=0]
//
// OUT gets doubles as they lie in memory: for one watched lane after the other (the first, the
// middle and the last, which all have the same text) the log-probability of each next token, and of
// every word after each 25th, with the best ones and the interval of the first. restore=13: after
// every 13th token the stream is written as bytes and continues in another session; write: also to
// PREFIX0, PREFIX1 and so on; read: continues with such files of another machine, whose bytes must
// be its own. together=50: the stream gets 50 tokens by one call
// (Session::StepMany), as long as no full distribution is due.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "converters/splitmix.h"
#include "format/blocks.h"
#include "format/input_file.h"
#include "format/write_file.h"
#include "runtime/session.h"
#include "tests/support/device_backends.h"

namespace kinglet {
namespace {

constexpr size_t kFullEvery = 25;
constexpr uint32_t kBest = 5;
constexpr uint32_t kLongestPart = 24;  // tokens of a text with a source

struct Way {
  uint64_t tokens = 5000;
  std::string backend = "cpu", write, read;
  uint32_t threads = 1, lanes = 1, restore = 0, together = 0;
};

// What one lane reads before its stream begins anew.
struct Part {
  std::vector<uint32_t> source, tokens;
};

// Small ids are frequent, as in vocabularies in the order of their counts.
std::vector<uint32_t> RandomIds(SplitMix64& random, uint64_t count, uint32_t size) {
  std::vector<uint32_t> ids;
  while (ids.size() < count) ids.push_back(random.Below(random.Below(size) + 1));
  return ids;
}

// As many tokens in every lane, in parts of the same lengths.
std::vector<Part> MakeText(const Model& model, uint64_t tokens, uint64_t seed) {
  const Plan& plan = model.plan();
  const uint64_t positions = PositionsOf(model.file().description()).value_or(tokens);
  SplitMix64 lengths(1), random(seed);
  std::vector<Part> parts;
  for (uint64_t remaining = tokens; remaining > 0;) {
    Part part;
    uint64_t count = std::min(remaining, positions);
    if (plan.encoder) {
      const uint32_t longest = std::min(plan.encoder->window, kLongestPart);
      const uint64_t source = 1 + lengths.Below(longest);
      part.source = RandomIds(random, source, plan.encoder->vocabulary_size);
      count = std::min<uint64_t>(count, plan.reading ? source : kLongestPart);
    }
    part.tokens = RandomIds(random, count, model.vocabulary_size());
    remaining -= count;
    parts.push_back(std::move(part));
  }
  return parts;
}

class Run {
 public:
  Run(std::shared_ptr<const Model> model, const Way& way) : model_(std::move(model)), way_(way) {
    watched_ = {0, way.lanes / 2, way.lanes - 1};
    for (uint32_t lane = 0; lane < way.lanes; ++lane) {
      lanes_.push_back(lane);
      texts_.push_back(MakeText(*model_, way.tokens, watched_.contains(lane) ? 2 : 3 + lane));
    }
  }

  Status Score() {
    KINGLET_RETURN_IF_ERROR(CreateSession());
    for (size_t part = 0; part < texts_[0].size(); ++part) {
      for (const uint32_t lane : lanes_) {
        const std::vector<uint32_t>& source = texts_[lane][part].source;
        KINGLET_RETURN_IF_ERROR(source.empty() ? session_->Reset(lane)
                                               : session_->Encode(source, {}, lane));
      }
      KINGLET_RETURN_IF_ERROR(ScorePart(part));
    }
    return Status();
  }

  std::map<uint32_t, std::vector<double>> Scores() && { return std::move(scores_); }

 private:
  Status CreateSession() {
    KINGLET_ASSIGN_OR_RETURN(
        session_, Session::Create(model_, {.lanes = way_.lanes, .threads = way_.threads}));
    return Status();
  }

  // Each call ends where Ask wants every word, or with the part.
  Status ScoreTogether(const std::vector<uint32_t>& tokens) {
    for (size_t at = 0; at < tokens.size();) {
      const size_t to_full = (kFullEvery - asked_ % kFullEvery) % kFullEvery + 1;
      const size_t count = std::min({size_t{way_.together}, to_full, tokens.size() - at});
      std::vector<double> of_tokens(count);
      uint64_t processed = 0;
      KINGLET_RETURN_IF_ERROR(
          session_->StepMany(std::span(tokens).subspan(at, count), of_tokens, processed));
      scores_[0].insert(scores_[0].end(), of_tokens.begin() + 1, of_tokens.end());
      asked_ += count - 1;
      at += count;
      KINGLET_RETURN_IF_ERROR(Ask({tokens[at % tokens.size()]}));
    }
    return Status();
  }

  Status ScorePart(size_t part) {
    if (way_.together > 0 && !model_->plan().reading) return ScoreTogether(texts_[0][part].tokens);
    const size_t count = texts_[0][part].tokens.size();
    std::vector<uint32_t> ids(lanes_.size()), next(lanes_.size());
    for (size_t i = 0; i < count; ++i) {
      for (const uint32_t lane : lanes_) {
        const std::vector<uint32_t>& tokens = texts_[lane][part].tokens;
        ids[lane] = tokens[i];
        next[lane] = tokens[(i + 1) % count];
        if (model_->plan().reading) KINGLET_RETURN_IF_ERROR(session_->LookAt(i, lane));
      }
      if (!model_->plan().reading) KINGLET_RETURN_IF_ERROR(session_->StepLanes(lanes_, ids));
      if (way_.restore != 0 && ++since_restored_ % way_.restore == 0) {
        KINGLET_RETURN_IF_ERROR(ContinueElsewhere());
        if (model_->plan().reading) KINGLET_RETURN_IF_ERROR(session_->LookAt(i, 0));
      }
      KINGLET_RETURN_IF_ERROR(Ask(next));
    }
    return Status();
  }

  Status ContinueElsewhere() {
    KINGLET_ASSIGN_OR_RETURN(const State state, session_->Save());
    std::vector<std::byte> bytes(state.BlobBytes());
    state.WriteBlob(bytes);
    KINGLET_RETURN_IF_ERROR(Exchange(bytes));
    KINGLET_RETURN_IF_ERROR(CreateSession());
    KINGLET_ASSIGN_OR_RETURN(const State read, State::ReadBlob(model_, bytes));
    return session_->Restore(read);
  }

  // With another machine.
  Status Exchange(const std::vector<std::byte>& bytes) {
    const std::string number = std::to_string(exchanged_++);
    if (!way_.write.empty()) {
      KINGLET_RETURN_IF_ERROR(WriteFileAtomically(bytes, way_.write + number));
    }
    if (way_.read.empty()) return Status();
    KINGLET_ASSIGN_OR_RETURN(const std::string other, ReadWholeFile(way_.read + number));
    if (std::ranges::equal(std::as_bytes(std::span(other)), bytes)) return Status();
    return Status(KINGLET_INTERNAL, way_.read + number + ": expected this machine's state");
  }

  Status Ask(const std::vector<uint32_t>& next) {
    std::vector<double> one(lanes_.size()), all(model_->vocabulary_size());
    const bool full = asked_++ % kFullEvery == 0;
    KINGLET_RETURN_IF_ERROR(session_->LogProbabilityLanes(lanes_, next, one));
    for (const uint32_t lane : watched_) {
      std::vector<double>& scores = scores_[lane];
      scores.push_back(one[lane]);
      if (!full) continue;
      KINGLET_RETURN_IF_ERROR(session_->LogProbabilities(std::span<double>(all), lane));
      scores.insert(scores.end(), all.begin(), all.end());
      KINGLET_ASSIGN_OR_RETURN(const std::vector<Candidate> best, session_->TopK(kBest, lane));
      for (const auto& [id, score] : best)
        scores.insert(scores.end(), {static_cast<double>(id), score});
      KINGLET_ASSIGN_OR_RETURN(const Interval first, session_->IntervalOf(best[0].id, lane));
      scores.push_back(static_cast<double>(first.low));
      scores.push_back(static_cast<double>(first.high));
    }
    return Status();
  }

  std::shared_ptr<const Model> model_;
  Way way_;
  std::vector<uint32_t> lanes_;
  std::set<uint32_t> watched_;
  std::vector<std::vector<Part>> texts_;  // of each lane
  std::unique_ptr<Session> session_;
  uint64_t asked_ = 0, since_restored_ = 0, exchanged_ = 0;
  std::map<uint32_t, std::vector<double>> scores_;  // of each watched lane
};

Status ScoreAndWrite(const std::string& path, const std::string& out, const Way& way) {
  static const Backend kEmulated = EmulatedCuda();
  ModelOptions options;
  if (way.backend == "emulated") {
    options.own_backend = &kEmulated;
  } else {
    options.backend = way.backend;
  }
  KINGLET_ASSIGN_OR_RETURN(auto model, Model::Open(path, options));
  Run run(std::move(model), way);
  KINGLET_RETURN_IF_ERROR(run.Score());
  std::ofstream file(out, std::ios::binary);
  for (const auto& [lane, scores] : std::move(run).Scores()) {
    file.write(reinterpret_cast<const char*>(scores.data()),
               static_cast<std::streamsize>(scores.size() * sizeof(double)));
  }
  return file.flush() ? Status() : Status(KINGLET_IO_ERROR, out + ": expected to write it");
}

template <class Number>
bool Read(const std::string& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && at == end;
}

bool ReadOption(const std::string& word, Way& way) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos) return false;
  const std::string key = word.substr(0, equals), value = word.substr(equals + 1);
  const std::pair<const char*, std::string*> texts[] = {
      {"backend", &way.backend}, {"write", &way.write}, {"read", &way.read}};
  for (const auto& [name, text] : texts) {
    if (key == name) return *text = value, true;
  }
  if (key == "tokens") return Read(value, way.tokens);
  if (key == "threads") return Read(value, way.threads);
  if (key == "lanes") return Read(value, way.lanes) && way.lanes > 0;
  if (key == "together") return Read(value, way.together);
  return key == "restore" && Read(value, way.restore);
}

int Main(const std::vector<std::string>& words) {
  Way way;
  for (size_t i = 2; i < words.size(); ++i) {
    if (!ReadOption(words[i], way)) {
      std::fprintf(stderr, "same_bits: expected an option and its value, found %s\n",
                   words[i].c_str());
      return 2;
    }
  }
  if (words.size() < 2 || ((way.restore != 0 || way.together != 0) && way.lanes != 1)) {
    std::fprintf(stderr, "same_bits: expected MODEL OUT, and one lane with restore or together\n");
    return 2;
  }
  const Status status = ScoreAndWrite(words[0], words[1], way);
  if (!status.ok()) std::fprintf(stderr, "same_bits: %s\n", status.message().c_str());
  return status.ok() ? 0 : status.code() == KINGLET_UNSUPPORTED ? 3 : 1;
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) {
  return kinglet::Main(std::vector<std::string>(argv + 1, argv + argc));
}
