#include "runtime/generator.h"

#include <array>
#include <numeric>
#include <utility>

#include "format/digest.h"
#include "runtime/special_tokens.h"

namespace kinglet {

uint64_t SeedOfStream(uint64_t seed, uint32_t stream) {
  if (stream == 0) return seed;
  const std::array<uint64_t, 2> key = {seed, stream};
  return Digest64(std::as_bytes(std::span<const uint64_t>(key)));
}

Generator::Generator(std::unique_ptr<Session> session, const StreamText& text,
                     const GenerationOptions& options)
    : session_(std::move(session)), options_(options), streams_(options.streams), texts_(1, text) {}

Result<Generator> Generator::Create(const std::shared_ptr<const Model>& model,
                                    const GenerationOptions& options) {
  KINGLET_ASSIGN_OR_RETURN(
      std::unique_ptr<Session> session,
      Session::Create(model, {.lanes = options.streams, .threads = options.threads}));
  const std::optional<uint32_t> start = model->file().description().start_token;
  if (start) KINGLET_RETURN_IF_ERROR(session->StepToken(*start));
  return Generator(std::move(session), StreamText(model, options.stop), options);
}

Status Generator::Feed(std::span<const uint32_t> prompt) {
  for (const uint32_t id : prompt) {
    KINGLET_RETURN_IF_ERROR(session_->StepToken(id));
    texts_.front().Skip(id);
  }
  return Status();
}

// Copies the stream after the prompt to every lane.
Status Generator::Begin() {
  if (session_->position() == 0) {
    const std::optional<uint32_t> begin = SpecialTokensOf(session_->model()).begin;
    if (!begin) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, "generate", "prompt",
                             "tokens to continue from, because no word begins a text of this model",
                             "none");
    }
    KINGLET_RETURN_IF_ERROR(Feed({&*begin, 1}));
  }
  for (uint32_t lane = 1; lane < streams_.size(); ++lane) {
    KINGLET_RETURN_IF_ERROR(session_->Fork(0, lane));
  }
  texts_.resize(streams_.size(), texts_.front());
  lanes_.resize(streams_.size());
  std::iota(lanes_.begin(), lanes_.end(), 0);
  return Status();
}

void Generator::Take(uint32_t stream, uint32_t id) {
  Stream& to = streams_[stream];
  StreamText& text = texts_[stream];
  to.ids.push_back(id);
  const bool at_end = id == session_->model().file().description().end_token;
  if (!at_end) to.text += text.Add(id);
  to.ended = at_end || text.stopped() || to.ids.size() == options_.tokens;
  if (to.ended) to.text += text.Finish();
}

Result<bool> Generator::Next() {
  if (!begun_) KINGLET_RETURN_IF_ERROR(Begin());
  begun_ = true;
  if (lanes_.empty()) return false;
  if (!stepped_) KINGLET_RETURN_IF_ERROR(session_->StepLanes(lanes_, tokens_));
  stepped_ = true;
  std::vector<uint64_t> seeds;
  seeds.reserve(lanes_.size());
  for (const uint32_t lane : lanes_) seeds.push_back(SeedOfStream(options_.seed, lane));
  tokens_.resize(lanes_.size());
  KINGLET_RETURN_IF_ERROR(session_->DrawLanes(lanes_, seeds, options_.draw, tokens_));
  stepped_ = false;
  size_t continuing = 0;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Take(lanes_[i], tokens_[i]);
    if (streams_[lanes_[i]].ended) continue;
    lanes_[continuing] = lanes_[i];
    tokens_[continuing++] = tokens_[i];
  }
  lanes_.resize(continuing);
  tokens_.resize(continuing);
  return continuing > 0;
}

}  // namespace kinglet
