// Text that a model generates: streams of drawn tokens after one prompt.
#ifndef KINGLET_RUNTIME_GENERATOR_H_
#define KINGLET_RUNTIME_GENERATOR_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kinglet/status.h"
#include "runtime/queries/draw_options.h"
#include "runtime/session.h"
#include "runtime/stream_text.h"

namespace kinglet {

struct GenerationOptions {
  uint64_t tokens = 100;  // the most tokens that are drawn for a stream
  uint32_t streams = 1;
  uint64_t seed = 0;
  DrawOptions draw;
  std::string stop;      // a stream's text ends before `stop`; "" means no stop text
  uint32_t threads = 1;  // threads of the session
};

// The seed with which a stream draws: for stream 0 the seed itself, for others the XXH3-64 of seed
// and stream as little-endian 64-bit integers. No stream depends on the number of streams.
uint64_t SeedOfStream(uint64_t seed, uint32_t stream);

class Generator {
 public:
  // Creates a session with a lane for each stream, and steps the model's start token if it has one.
  // Errors: those of Session::Create and of stepping.
  static Result<Generator> Create(const std::shared_ptr<const Model>& model,
                                  const GenerationOptions& options);
  // Feeds the prompt, or its next part. After an error the tokens before the one refused were fed.
  // Errors: those of Session::StepToken. REQUIRES: no token was drawn yet.
  Status Feed(std::span<const uint32_t> prompt);

  struct Stream {
    std::vector<uint32_t> ids;  // drawn
    std::string text;           // what `ids` spell, as far as it is known (StreamText)
    // True once all tokens wanted were drawn, or the model's end token was, or the last of `ids`
    // complete the stop text, before which `text` ends.
    bool ended = false;
  };
  const std::vector<Stream>& streams() const { return streams_; }
  // Draws a token for every stream that has not ended. Returns whether a stream continues. Errors:
  // those of Session::Draw and of stepping, after which no stream has a further token;
  // KINGLET_INVALID_ARGUMENT if the prompt is empty and no token begins a text of this model. After
  // std::bad_alloc streams may lack a token.
  Result<bool> Next();

 private:
  Generator(std::unique_ptr<Session> session, const StreamText& text,
            const GenerationOptions& options);
  Status Begin();
  void Take(uint32_t stream, uint32_t id);

  std::unique_ptr<Session> session_;
  GenerationOptions options_;
  std::vector<Stream> streams_;
  std::vector<StreamText> texts_;  // that of the prompt alone, until the first token is drawn
  // The lanes of the streams that continue, and the token that was drawn last for each.
  std::vector<uint32_t> lanes_, tokens_;
  bool begun_ = false;
  bool stepped_ = true;  // whether tokens_ were stepped
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_GENERATOR_H_
