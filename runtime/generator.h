// Text that a model makes: streams of drawn words after one prompt.
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
  uint64_t tokens = 100;  // the most that are drawn for a stream
  uint32_t streams = 1;
  uint64_t seed = 0;
  DrawOptions draw;
  std::string stop;      // a stream's text ends before this; "": nothing stops it
  uint32_t threads = 1;  // of the session
};

// The seed with which a stream draws: for stream 0 the seed itself, for others the XXH3-64 of seed
// and stream as little-endian 64-bit integers. What a stream draws does not depend on how many
// streams there are.
uint64_t SeedOfStream(uint64_t seed, uint32_t stream);

class Generator {
 public:
  // A session with a lane for each stream, after the model's start token if it has one. Errors:
  // those of Session::Create and of stepping.
  static Result<Generator> Create(const std::shared_ptr<const Model>& model,
                                  const GenerationOptions& options);
  // The prompt, or its next part. After an error the tokens before the one refused were fed.
  // Errors: those of Session::StepToken. REQUIRES: nothing was drawn.
  Status Feed(std::span<const uint32_t> prompt);

  struct Stream {
    std::vector<uint32_t> ids;  // drawn
    std::string text;           // of them, as far as it is known (StreamText)
    // As many tokens as wanted were drawn, or the model's end token, or the stop text: the last
    // tokens of `ids` spell it, and `text` ends before it.
    bool ended = false;
  };
  const std::vector<Stream>& streams() const { return streams_; }
  // Draws a word for every stream that has not ended. Returns whether any continues. Errors: those of
  // Session::Draw and of steps, after which no stream has a further word; KINGLET_INVALID_ARGUMENT
  // if nothing was fed and no word begins a text of this model. After std::bad_alloc streams may
  // lack a word.
  Result<bool> Next();

 private:
  Generator(std::unique_ptr<Session> session, const StreamText& text,
            const GenerationOptions& options);
  Status Begin();
  void Take(uint32_t stream, uint32_t id);

  std::unique_ptr<Session> session_;
  GenerationOptions options_;
  std::vector<Stream> streams_;
  std::vector<StreamText> texts_;  // one, of the prompt, until the first word is drawn
  // Of the streams that continue: lane, and the word that was drawn last and is to be stepped.
  std::vector<uint32_t> lanes_, words_;
  bool begun_ = false;
  bool stepped_ = true;  // the words were
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_GENERATOR_H_
