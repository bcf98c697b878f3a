// Losses of a text's tokens in one stream, for commands that compare models on a text. The bits are
// those of `kinglet score`; memory does not grow with the text.
#ifndef KINGLET_TOOLS_STREAM_LOSSES_H_
#define KINGLET_TOOLS_STREAM_LOSSES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "converters/texts/text_reader.h"
#include "kinglet/status.h"
#include "runtime/model.h"
#include "runtime/session.h"

namespace kinglet {

// A text, or a file of token ids; one of the paths is empty.
struct TextFile {
  std::string text, ids;

  const std::string& path() const { return text.empty() ? ids : text; }
};

class StreamLosses {
 public:
  // Takes a token of the text; nullopt for a first token that is fed and not scored.
  using Sink = std::function<void(uint32_t id, std::optional<double> log_probability)>;
  // Called now and then with the number of tokens so far.
  using Progressed = std::function<void(uint64_t tokens)>;

  // Reads the whole file. Errors: those of Session::Create, of reading the file and of steps, the
  // last with the token's position. REQUIRES: a language model.
  static Result<StreamLosses> Read(const std::shared_ptr<const Model>& model, uint32_t threads,
                                   const TextFile& file, const Sink& sink,
                                   const Progressed& progressed);

  uint64_t tokens() const { return tokens_; }
  // Size of the scored text; nullopt if the text is not known.
  const std::optional<TextSize>& size() const { return size_; }

 private:
  explicit StreamLosses(std::unique_ptr<Session> session) : session_(std::move(session)) {}
  Status Start(const ModelDescription& description);
  Status Add(const TokenSequence& piece, const Sink& sink, const Progressed& progressed);
  Status ScorePending(const Sink& sink);

  std::unique_ptr<Session> session_;
  bool first_scored_ = false;
  std::vector<uint32_t> pending_;  // not scored yet
  std::vector<double> log_probabilities_;
  uint64_t tokens_ = 0;  // scored or fed
  std::optional<TextSize> size_;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_STREAM_LOSSES_H_
