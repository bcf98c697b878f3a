// Calls of the C interface with any arguments that C can express, by two threads: one model, a
// session for each thread, and one session that the other thread may only cancel.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "kinglet/kinglet.h"
#include "tests/fuzz/byte_reader.h"
#include "tests/fuzz/targets.h"
#include "tests/support/classifier_builder.h"
#include "tests/support/masked_builder.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/translation_builder.h"

namespace kinglet::fuzz {
namespace {

constexpr size_t kRoom = 64;

ModelDraft TinyMaskedText() {
  ModelDraft draft = TinyMasked({.scores = 3});
  WordPieceTables pieces;
  pieces.pieces = draft.vocabulary;
  draft.tokenizer = TextTables{false, pieces};
  return draft;
}

const std::vector<std::byte>& CalledModel(uint8_t choice) {
  const auto serialise = [](const ModelDraft& draft) {
    auto bytes = SerialiseModel(draft);
    Expect(bytes.ok(), "expected a model, found " + bytes.status().message());
    return *bytes;
  };
  static const std::array kModels = {
      serialise(TinyMicronet({.quantised = true, .bits = 5, .cache_capacity = 4})),
      serialise(TinyRecurrent()), serialise(TinyTranslation()), serialise(TinyClassifier()),
      serialise(TinyMaskedText())};
  return kModels[choice % kModels.size()];
}

// The arguments of one thread's calls. Buffers are on the heap and exactly as large as the call is
// told, so that sanitizers notice every access beyond them.
class Caller {
 public:
  Caller(const kinglet_model* model, kinglet_session* cancelled, Input input)
      : model_(model), cancelled_(cancelled), bytes_(input) {
    NewSession();
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller() {
    kinglet_session_destroy(session_);
    kinglet_state_destroy(state_);
    kinglet_embedding_destroy(embedding_);
    kinglet_generation_destroy(generation_);
    kinglet_coder_destroy(coder_);
    kinglet_beam_destroy(beam_);
  }

  void Run() {
    for (int calls = 0; calls < 40 && !bytes_.ended(); ++calls) Check(Call(bytes_.Byte() % 46));
  }
  const std::string& finding() const { return finding_; }

 private:
  void Check(kinglet_status status) {
    if (status == KINGLET_INTERNAL ||
        std::strcmp(kinglet_status_name(status), "unknown status") == 0) {
      finding_ = std::string("expected a known status, found ") + kinglet_error_message();
    }
    if (status != KINGLET_OK && *kinglet_error_message() == '\0') finding_ = "expected a message";
  }

  uint32_t Id() { return static_cast<uint32_t>(bytes_.Number()); }
  uint32_t Lane() { return bytes_.Byte() < 220 ? bytes_.Byte() % 3 : Id(); }
  std::vector<uint32_t> Ids() {
    std::vector<uint32_t> ids(bytes_.Between(0, 4));
    for (uint32_t& id : ids) id = bytes_.Byte() < 230 ? bytes_.Byte() % 24 : Id();
    return ids;
  }
  std::string Text() {
    const Input text = bytes_.Take(bytes_.Between(0, 6));
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  void NewSession() {
    kinglet_session_options options;
    kinglet_session_options_init(&options, sizeof options);
    options.lanes = bytes_.Between(0, 4);
    options.threads = bytes_.Between(0, 3);
    options.empty_cache = bytes_.Between(0, 2);
    kinglet_session* session = nullptr;
    Check(kinglet_session_create(model_, &options, &session));
    if (session == nullptr) return;
    kinglet_session_destroy(session_);
    session_ = session;
  }

  kinglet_status Call(int number) {
    if (number < 10) return Advance(number);
    if (number < 20) return Query(number);
    if (number < 30) return Other(number);
    if (number < 35) return Read(number);
    return number < 42 ? Code(number) : Search(number);
  }

  kinglet_status Advance(int number) {
    switch (number) {
      case 0:
        NewSession();
        return KINGLET_OK;
      case 1: {
        const auto source = Ids();
        return kinglet_session_encode(session_, Lane(), source.data(), source.size());
      }
      case 2:
        return kinglet_session_reset(session_, Lane());
      case 3:
        return kinglet_session_fork(session_, Lane(), Lane());
      case 4: {
        kinglet_state* state = nullptr;
        const kinglet_status status = kinglet_session_save(session_, Lane(), &state);
        if (state != nullptr) {
          kinglet_state_destroy(state_);
          state_ = state;
        }
        return status;
      }
      case 5:
        return kinglet_session_restore(session_, Lane(), state_);
      case 6: {
        const auto ids = Ids();
        std::vector<uint32_t> lanes(ids.size());
        for (uint32_t& lane : lanes) lane = Lane();
        return kinglet_session_step_lanes(session_, lanes.data(), ids.data(), ids.size());
      }
      case 8: {
        std::vector<uint32_t> ids(bytes_.Between(0, 80));
        for (uint32_t& id : ids) id = bytes_.Byte() % 24;
        std::vector<double> numbers(ids.size());
        uint64_t processed = 0;
        return kinglet_session_step_many(session_, Lane(), ids.data(), ids.size(),
                                         bytes_.Bit() ? numbers.data() : nullptr,
                                         bytes_.Bit() ? &processed : nullptr);
      }
      case 7:
        return kinglet_session_cancel(bytes_.Bit() ? cancelled_ : session_);
      default:
        return kinglet_session_step(session_, Lane(), bytes_.Byte() % 24);
    }
  }

  kinglet_status Query(int number) {
    const uint32_t lane = Lane();
    const size_t room = bytes_.Between(0, kRoom);
    std::vector<uint32_t> ids(room);
    std::vector<double> numbers(room);
    std::vector<float> floats(room);
    uint32_t count = 0;
    uint64_t low = 0, high = 0;
    switch (number) {
      case 10:
        return kinglet_session_top_k(session_, lane, Id(), ids.data(), numbers.data(), room,
                                     &count);
      case 11:
        return kinglet_session_log_probabilities(session_, lane, floats.data(), room);
      case 12: {
        const auto asked = Ids();
        std::vector<double> out(asked.size());
        return kinglet_session_log_probabilities_of(session_, lane, asked.data(), asked.size(),
                                                    out.data());
      }
      case 13:
        return kinglet_session_top_p(session_, lane, bytes_.Byte() / 200.0, ids.data(),
                                     numbers.data(), room, &count);
      case 14:
        return kinglet_session_rank(session_, lane, Id(), &count);
      case 15: {
        kinglet_draw_options options;
        kinglet_draw_options_init(&options, sizeof options);
        const auto excluded = Ids();
        options.top_k = Id();
        options.top_p = bytes_.Byte() / 200.0;
        options.temperature = bytes_.Byte() / 60.0;
        options.excluded = excluded.data();
        options.excluded_count = excluded.size();
        return kinglet_session_draw(session_, lane, bytes_.Number(), &options, &count);
      }
      case 16: {
        const std::string prefix = Text();
        return kinglet_session_next_characters(session_, lane, prefix.data(), prefix.size(),
                                               ids.data(), numbers.data(), room, &count);
      }
      case 17: {
        const std::string prefix = Text();
        return kinglet_session_text_probability(session_, lane, prefix.data(), prefix.size(),
                                                bytes_.Between(0, 200), &numbers.emplace_back(),
                                                &low);
      }
      case 18:
        return kinglet_session_interval(session_, lane, Id(), &low, &high);
      default:
        return kinglet_session_word_at(session_, lane, Id(), &count);
    }
  }

  kinglet_status Other(int number) {
    const size_t room = bytes_.Between(0, kRoom);
    std::vector<char> text(room);
    uint64_t needed = 0;
    switch (number) {
      case 20:
        return kinglet_model_token_text(model_, Id(), text.data(), room, &needed);
      case 21: {
        const std::string word = Text();
        uint32_t id = 0;
        return kinglet_model_find_token(model_, word.data(), word.size(), &id);
      }
      case 22: {
        std::vector<uint32_t> parents = Ids(), ids(parents.size());
        for (uint32_t& id : ids) id = bytes_.Byte() % 24;
        if (!parents.empty()) parents[0] = KINGLET_NO_PARENT;
        std::vector<double> out(ids.size());
        return kinglet_session_score_tree(session_, parents.data(), ids.data(), ids.size(),
                                          out.data(), &needed);
      }
      case 23: {
        std::vector<std::byte> blob(bytes_.Between(0, 255) * size_t{8});
        return kinglet_state_write(state_, blob.data(), blob.size(), &needed);
      }
      case 24: {
        const Input blob = bytes_.Take(bytes_.Byte());
        kinglet_state* state = nullptr;
        const kinglet_status status = kinglet_state_read(model_, blob.data(), blob.size(), &state);
        kinglet_state_destroy(state);
        return status;
      }
      case 25:
        if (embedding_ != nullptr) return KINGLET_OK;
        return kinglet_embedding_create(model_, &embedding_);
      case 26: {
        const auto ids = Ids();
        std::vector<float> out(room);
        return kinglet_embedding_vectors(embedding_, ids.data(), ids.size(), out.data(), room);
      }
      case 27: {
        const auto ids = Ids();
        std::vector<double> logits(room), logs(room);
        return kinglet_embedding_classify(embedding_, ids.data(), ids.size(), logits.data(),
                                          logs.data(), room);
      }
      case 28: {
        if (generation_ != nullptr) {
          int32_t more = 0;
          const kinglet_status status = kinglet_generation_next(generation_, &more);
          Check(kinglet_generation_text(generation_, Id(), text.data(), room, &needed));
          return status;
        }
        kinglet_generation_options options;
        kinglet_generation_options_init(&options, sizeof options);
        options.streams = bytes_.Between(0, 3);
        options.tokens = bytes_.Number();
        const auto prompt = Ids();
        return kinglet_generation_create(model_, &options, prompt.data(), prompt.size(),
                                         &generation_);
      }
      default: {
        int32_t equal = 0;
        Check(kinglet_state_hash(state_, &needed));
        return kinglet_state_equal(state_, state_, &equal);
      }
    }
  }

  // Masked models.
  kinglet_status Read(int number) {
    const size_t room = bytes_.Between(0, kRoom);
    std::vector<double> numbers(room);
    switch (number) {
      case 30: {
        const auto ids = Ids();
        std::vector<uint32_t> segments(ids.size());
        for (uint32_t& segment : segments) segment = bytes_.Between(0, 2);
        return kinglet_session_read(session_, Lane(), ids.data(),
                                    bytes_.Bit() ? segments.data() : nullptr, ids.size());
      }
      case 31:
        return kinglet_session_look_at(session_, Lane(),
                                       bytes_.Bit() ? bytes_.Between(0, 3) : bytes_.Number());
      case 32:
        return kinglet_session_pooled(session_, Lane(), numbers.data(), room);
      case 33:
        return kinglet_session_scores(session_, Lane(), bytes_.Between(0, 2), numbers.data(), room);
      default: {
        const std::string text = Text();
        std::vector<uint32_t> segments(room);
        uint64_t needed = 0;
        return kinglet_model_text_segments(model_, text.data(), text.size(), segments.data(), room,
                                           &needed);
      }
    }
  }

  // Hypotheses, of which beam_ has given those in hypotheses_.
  kinglet_status Search(int number) {
    if (beam_ == nullptr) {
      const kinglet_beam_options options = {
          sizeof options, 0, bytes_.Between(1, 3), bytes_.Between(0, 2), bytes_.Number(), nullptr};
      kinglet_status status = kinglet_beam_create(model_, &options, &beam_);
      hypotheses_.assign(1, 0);
      if (status == KINGLET_OK) {
        status = kinglet_beam_begin(beam_, bytes_.Bit() ? state_ : nullptr, hypotheses_.data());
      }
      return status;
    }
    const auto ids = Ids();
    std::vector<uint64_t> asked(ids.size());
    for (uint64_t& one : asked) {
      one = bytes_.Byte() < 240 ? hypotheses_[bytes_.Byte() % hypotheses_.size()] : Id();
    }
    std::vector<double> numbers(ids.size() * 3);
    std::vector<uint32_t> best(numbers.size());
    std::vector<float> rows(bytes_.Between(0, 100));
    uint64_t needed = 0;
    switch (number) {
      case 42: {
        std::vector<uint64_t> next(ids.size());
        const kinglet_status status =
            kinglet_beam_step(beam_, asked.data(), ids.data(), ids.size(), next.data());
        if (status == KINGLET_OK) hypotheses_.insert(hypotheses_.end(), next.begin(), next.end());
        return status;
      }
      case 43:
        Check(kinglet_beam_log_probability(beam_, asked.data(), ids.data(), ids.size(),
                                           numbers.data()));
        return kinglet_beam_log_probabilities(beam_, asked.data(), asked.size(), rows.data(),
                                              rows.size());
      case 44:
        Check(kinglet_beam_tokens(beam_, hypotheses_.back(), best.data(), best.size(), &needed));
        return kinglet_beam_top_k(beam_, asked.data(), asked.size(), 3, best.data(), numbers.data(),
                                  numbers.size(), nullptr);
      default:
        return bytes_.Bit() ? kinglet_beam_hold(beam_, asked.data(), asked.size())
                            : kinglet_beam_drop(beam_, asked.data(), asked.size());
    }
  }

  // Archives.
  kinglet_status Code(int number) {
    std::vector<char> room(bytes_.Between(0, kRoom));
    uint64_t count = 0;
    switch (number) {
      case 35:
      case 36: {
        kinglet_coder_options options;
        kinglet_coder_options_init(&options, sizeof options);
        options.threads = bytes_.Between(0, 2);
        options.block_size = bytes_.Bit() ? 1024 : 0;
        options.salvage = bytes_.Between(0, 2);
        kinglet_coder_destroy(coder_);
        coder_ = nullptr;
        const auto create = number == 35 ? kinglet_compressor_create : kinglet_decompressor_create;
        return create(model_, &options, &coder_);
      }
      case 37: {
        const std::string text = Text();
        return kinglet_coder_add(coder_, text.data(), text.size());
      }
      case 38:
        return kinglet_coder_finish(coder_);
      case 39:
        return kinglet_coder_take(coder_, room.data(), room.size(), &count);
      case 40:
        return kinglet_coder_damages(coder_, room.data(), room.size(), &count);
      default:
        return kinglet_coder_cancel(coder_);
    }
  }

  const kinglet_model* model_;
  kinglet_session* cancelled_;
  ByteReader bytes_;
  kinglet_session* session_ = nullptr;
  kinglet_state* state_ = nullptr;
  kinglet_embedding* embedding_ = nullptr;
  kinglet_generation* generation_ = nullptr;
  kinglet_coder* coder_ = nullptr;
  kinglet_beam* beam_ = nullptr;
  std::vector<uint64_t> hypotheses_;
  std::string finding_;
};

}  // namespace

void RunCalls(Input input) {
  if (input.empty()) return;
  const auto& file = CalledModel(static_cast<uint8_t>(input[0]));
  kinglet_model* model = nullptr;
  Expect(kinglet_model_open_memory(file.data(), file.size(), nullptr, &model) == KINGLET_OK,
         "expected a model");
  kinglet_session* cancelled = nullptr;
  (void)kinglet_session_create(model, nullptr, &cancelled);  // null where it predicts nothing
  std::string finding;
  {
    const Input rest = input.subspan(1);
    Caller first(model, cancelled, rest.first(rest.size() / 2));
    Caller second(model, cancelled, rest.subspan(rest.size() / 2));
    std::thread other([&] { second.Run(); });
    first.Run();
    for (uint32_t id = 0; id < 4 && cancelled != nullptr; ++id) {
      (void)kinglet_session_step(cancelled, 0, id);
    }
    other.join();
    finding = first.finding() + second.finding();
  }
  kinglet_model_close(model);
  kinglet_session_destroy(cancelled);
  Expect(finding.empty(), finding);
}

}  // namespace kinglet::fuzz
