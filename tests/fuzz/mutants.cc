// Fields are changed in place, in the packed header, where FlatBuffers' reflection finds them;
// lists in the unpacked one.
#include "tests/fuzz/mutants.h"

#include <flatbuffers/minireflect.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kinglet/generation.h"
#include "kinglet/kinglet.h"
#include "kinglet/queries.h"
#include "kinglet/tree.h"
#include "kinglet/words.h"
#include "tests/format/editable_file.h"
#include "tests/fuzz/random_models.h"
#include "tests/fuzz/random_tables.h"
#include "tests/fuzz/repair.h"
#include "tests/fuzz/targets.h"
#include "tests/support/classifier_builder.h"
#include "tests/support/recurrent_translation_builder.h"

namespace kinglet::fuzz {
namespace {

class Chance {
 public:
  explicit Chance(uint64_t number) : random_(number * 0x9E3779B97F4A7C15U + 1) {}
  uint64_t Next() { return random_.Next(); }
  uint64_t Below(uint64_t count) { return Next() % count; }
  bool OneIn(uint64_t count) { return Below(count) == 0; }
  template <class List>
  auto& Of(List& list) {
    return list[Below(std::size(list))];
  }

 private:
  TestRandom random_;
};

ModelDraft RandomDraft(Chance& chance) {
  std::vector<std::byte> bytes(64);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(chance.Next());
  ByteReader reader(bytes);
  if (chance.OneIn(12)) {
    return TinyClassifier({.positions = 2, .hidden = 5, .max_pool = chance.OneIn(2)});
  }
  if (chance.OneIn(12)) return TinyRecurrentTranslation();
  ModelDraft draft = MakeRandomModel(reader).draft;
  if (!draft.vocabulary.empty() && chance.OneIn(2)) {
    std::vector<std::byte> chosen(96);
    for (std::byte& byte : chosen) byte = static_cast<std::byte>(chance.Next());
    ByteReader tables(chosen);
    SymbolMaker symbols(tables);
    draft.tokenizer = MakeRandomTables(tables, symbols);
    const size_t words = std::min(draft.vocabulary.size(), symbols.made().size());
    std::copy_n(symbols.made().begin(), chance.Below(words + 1), draft.vocabulary.begin());
  }
  return draft;
}

EditableFile RandomFile(Chance& chance) {
  ModelDraft draft = RandomDraft(chance);
  auto bytes = SerialiseModel(draft);
  if (!bytes.ok()) {
    draft.tokenizer.reset();
    draft.vocabulary.clear();
    bytes = SerialiseModel(draft);
  }
  Expect(bytes.ok(), "expected a model, found " + bytes.status().message());
  return EditableFile::FromBytes(*bytes);
}

template <class T>
std::unique_ptr<T> Copy(const std::unique_ptr<T>& from) {
  return from ? std::make_unique<T>(*from) : nullptr;
}
uint32_t Copy(uint32_t from) { return from; }
double Copy(double from) { return from; }

// Drops an entry, repeats one, many times too, or swaps two.
template <class List>
void ChangeList(List& list, Chance& chance) {
  if (list.empty()) return;
  const size_t at = chance.Below(list.size()), other = chance.Below(list.size());
  switch (chance.Below(4)) {
    case 0:
      list.erase(list.begin() + static_cast<ptrdiff_t>(at));
      return;
    case 1:
      std::swap(list[at], list[other]);
      return;
    case 2:
      list[at] = Copy(list[other]);
      return;
    default:
      for (uint64_t i = chance.OneIn(8) ? 1 + chance.Below(5000) : 1; i > 0; --i) {
        list.push_back(Copy(list[at]));
      }
  }
}

void ChangeEmbedding(editable::AdaptiveEmbeddingT& embedding, Chance& chance) {
  ChangeList(embedding.bins, chance);
  ChangeList(embedding.units, chance);
  for (const auto& unit : embedding.units) ChangeList(unit->layers, chance);
}

void ChangeLists(EditableFile& file, Chance& chance) {
  auto& header = file.header;
  if (chance.OneIn(6)) ChangeList(header.tensors, chance);
  if (chance.OneIn(6)) ChangeList(header.blocks, chance);
  if (chance.OneIn(50)) header.features.push_back("x");
  if (header.golden && chance.OneIn(4)) {
    ChangeList(header.golden->ids, chance);
    ChangeList(header.golden->log_probabilities, chance);
  }
  for (auto& block : header.blocks) {
    if (!chance.OneIn(3)) continue;
    if (block->adaptive_embedding) ChangeEmbedding(*block->adaptive_embedding, chance);
    if (block->transformer_decoder) ChangeList(block->transformer_decoder->layers, chance);
    if (block->transformer_encoder) ChangeList(block->transformer_encoder->stack->layers, chance);
    if (block->masked_model) ChangeList(block->masked_model->stack->layers, chance);
    if (block->adaptive_softmax) ChangeList(block->adaptive_softmax->tails, chance);
    if (block->recurrent_decoder) ChangeList(block->recurrent_decoder->layers, chance);
    if (block->recurrent_encoder) ChangeList(block->recurrent_encoder->forward, chance);
    if (block->dense_layers) ChangeList(block->dense_layers->layers, chance);
  }
  for (auto& tensor : header.tensors) {
    if (chance.OneIn(40)) ChangeList(tensor->shape, chance);
    if (tensor->coded && chance.OneIn(8)) ChangeList(tensor->coded->pools, chance);
    if (chance.OneIn(60)) tensor->mask.reset();
  }
  // Parts of another model.
  if (chance.OneIn(10)) {
    EditableFile other = RandomFile(chance);
    if (!other.header.blocks.empty() && !header.blocks.empty()) {
      chance.Of(header.blocks) = std::move(chance.Of(other.header.blocks));
    }
  }
}

constexpr float kFloats[] = {0.0f,
                             -0.0f,
                             1.0f,
                             -1.0f,
                             1e-40f,
                             3.4e38f,
                             -3.4e38f,
                             1e-30f,
                             1e30f,
                             65504.,
                             0.5f,
                             255.0f,
                             std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN()};

void ChangeSegment(EditableFile& file, Chance& chance) {
  if (file.segments.empty()) return;
  std::vector<std::byte>& segment = chance.Of(file.segments);
  switch (chance.Below(12)) {
    case 0:
      std::swap(segment, chance.Of(file.segments));
      return;
    case 1:
      segment.resize(segment.size() + chance.Below(9));
      return;
    case 2:
      segment.resize(segment.size() - std::min<size_t>(segment.size(), chance.Below(9)));
      return;
    case 3:
    case 4:
    case 5:
    case 6:
      if (segment.size() >= sizeof(float)) {
        const float value = kFloats[chance.Below(std::size(kFloats))];
        std::memcpy(&segment[chance.Below(segment.size() / 4) * 4], &value, sizeof value);
      }
      return;
    case 7:
      std::fill(segment.begin(), segment.end(), static_cast<std::byte>(chance.OneIn(2) ? 0 : 0xFF));
      return;
    default:
      for (uint64_t i = 1 + chance.Below(4); i > 0 && !segment.empty(); --i) {
        chance.Of(segment) ^= std::byte{1} << static_cast<int>(chance.Below(8));
      }
  }
}

// The file with the header as FlatBuffers writes it with every field that has a value, so that all
// of them can be changed in place.
std::vector<std::byte> Pack(EditableFile& file) {
  const auto pack = [&file] {
    flatbuffers::FlatBufferBuilder builder;
    builder.ForceDefaults(true);
    builder.Finish(editable::Model::Pack(builder, &file.header), editable::ModelIdentifier());
    const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  constexpr size_t kUnit = 64;
  const auto rounded = [](size_t position) { return (position + kUnit - 1) / kUnit * kUnit; };
  file.header.segments.resize(file.segments.size());
  const size_t header_bytes = pack().size();
  std::vector<std::byte> rest;
  for (size_t i = 0; i < file.segments.size(); ++i) {
    const size_t offset = rounded(kUnit + header_bytes + rest.size());
    file.header.segments[i] = editable::Segment(offset, file.segments[i].size(), 0);
    rest.resize(offset - kUnit - header_bytes);
    rest.insert(rest.end(), file.segments[i].begin(), file.segments[i].end());
  }
  return Frame64(pack(), rest);
}

// Every number of the header except the segment table's, by its field's name.
class Numbers : public flatbuffers::IterationVisitor {
 public:
  struct Place {
    const uint8_t* at;
    flatbuffers::ElementaryType type;
  };

  void StartSequence() override { ++depth_; }
  void EndSequence() override { --depth_; }
  void Field(size_t, size_t, flatbuffers::ElementaryType type, bool is_vector,
             const flatbuffers::TypeTable*, const char* name, const uint8_t* value) override {
    name_ = name == nullptr ? "" : name;
    if (depth_ == 1) in_segments_ = name_ == "segments";
    if (value != nullptr && !is_vector) Add(type, value);
  }
  void Element(size_t, flatbuffers::ElementaryType type, const flatbuffers::TypeTable*,
               const uint8_t* value) override {
    Add(type, value);
  }

  const std::map<std::string, std::vector<Place>>& by_name() const { return by_name_; }

 private:
  void Add(flatbuffers::ElementaryType type, const uint8_t* value) {
    const bool is_number = type != flatbuffers::ET_SEQUENCE && type != flatbuffers::ET_STRING;
    if (is_number && !in_segments_) {
      by_name_[name_].push_back({value, type});
    }
  }
  int depth_ = 0;
  bool in_segments_ = false;
  std::string name_;
  std::map<std::string, std::vector<Place>> by_name_;
};

template <class T>
void Write(uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

void ChangeNumber(const Numbers::Place& place, uint8_t* at, const Numbers& all, Chance& chance) {
  constexpr uint64_t kTelling[] = {0,       1,          2,          3,          7,
                                   255,     256,        65535,      1 << 16,    (1 << 20) - 1,
                                   1 << 20, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, UINT64_MAX};
  switch (place.type) {
    case flatbuffers::ET_FLOAT:
      return Write(at, kFloats[chance.Below(std::size(kFloats))]);
    case flatbuffers::ET_DOUBLE:
      return Write(at, static_cast<double>(kFloats[chance.Below(std::size(kFloats))]));
    case flatbuffers::ET_BOOL:
      return Write(at, static_cast<uint8_t>(chance.Below(2)));
    case flatbuffers::ET_UCHAR:
      return Write(at, static_cast<uint8_t>(chance.Below(chance.OneIn(4) ? 12 : 3)));
    case flatbuffers::ET_ULONG:
      return Write(at, chance.OneIn(2) ? kTelling[chance.Below(std::size(kTelling))]
                                       : uint64_t{1} << chance.Below(64));
    case flatbuffers::ET_UINT: {
      auto value = flatbuffers::ReadScalar<uint32_t>(at);
      const uint64_t how = chance.Below(4);
      if (how == 0) {
        value += static_cast<uint32_t>(chance.Below(5)) - 2;
      } else if (how == 1) {
        value = static_cast<uint32_t>(kTelling[chance.Below(std::size(kTelling))]);
      } else if (how == 2) {
        value = uint32_t{1} << chance.Below(32);
      } else {
        // Another field's number: a tensor in another role, a size of something else.
        auto name = all.by_name().begin();
        std::advance(name, static_cast<ptrdiff_t>(chance.Below(all.by_name().size())));
        const Numbers::Place& other = chance.Of(name->second);
        if (other.type == flatbuffers::ET_UINT) {
          value = flatbuffers::ReadScalar<uint32_t>(other.at);
        }
      }
      return Write(at, value);
    }
    default:
      return;
  }
}

uint8_t* HeaderOf(std::vector<std::byte>& file) {
  constexpr size_t kFrame = 64;
  return reinterpret_cast<uint8_t*>(file.data() + kFrame);
}

Numbers NumbersOf(const uint8_t* header) {
  Numbers numbers;
  flatbuffers::IterateFlatBuffer(header, editable::ModelTypeTable(), &numbers);
  return numbers;
}

void ChangeNumbers(std::vector<std::byte>& file, uint64_t changes, Chance& chance) {
  uint8_t* const header = HeaderOf(file);
  const Numbers numbers = NumbersOf(header);
  for (; changes > 0; --changes) {
    auto name = numbers.by_name().begin();
    std::advance(name, static_cast<ptrdiff_t>(chance.Below(numbers.by_name().size())));
    const Numbers::Place& place = chance.Of(name->second);
    ChangeNumber(place, header + (place.at - header), numbers, chance);
  }
}

// Gives a tensor another shape, with zeros that take a bit each. Returns false for a tensor that
// cannot have another shape.
bool Reshape(EditableFile& file, editable::TensorT& tensor, const std::vector<uint32_t>& shape) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 18;
  uint64_t entries = 1;
  for (const uint32_t size : shape) entries *= size;
  if (tensor.coded || entries / 8 > kMostBytes) return false;
  // Every segment has an owner, so the scales' one becomes the mask's.
  std::optional<uint32_t> bits;
  if (tensor.mask) bits = tensor.mask->bits;
  if (tensor.packed) {
    if (bits) return false;
    bits = tensor.packed->scales->words;
    tensor.dense = std::make_unique<editable::DenseT>();
    tensor.dense->values = tensor.packed->codes;
    tensor.packed.reset();
  }
  if (!bits) {
    bits = static_cast<uint32_t>(file.segments.size());
    file.segments.emplace_back();
  }
  if (*bits >= file.segments.size() || tensor.dense->values >= file.segments.size()) return false;
  tensor.shape = shape;
  tensor.dense->type = editable::FloatType::F32;
  tensor.mask = std::make_unique<editable::MaskT>();
  tensor.mask->bits = *bits;
  file.segments[*bits].assign((entries + 7) / 8, std::byte{0});
  file.segments[tensor.dense->values].clear();
  return true;
}

// The shape and the tensor that a refusal "expected shape [2, 3], found [2, 4] of tensor NAME" is
// about.
std::optional<std::pair<std::vector<uint32_t>, std::string>> ShapeWanted(const std::string& text) {
  constexpr std::string_view kBegin = "expected shape [", kName = "] of tensor ";
  const size_t begin = text.find(kBegin), name = text.find(kName);
  if (begin == text.npos || name == text.npos) return std::nullopt;
  std::vector<uint32_t> shape;
  const char* at = text.c_str() + begin + kBegin.size();
  for (char* end = nullptr; *at != ']'; at = *end == ',' ? end + 1 : end) {
    shape.push_back(static_cast<uint32_t>(std::strtoul(at, &end, 10)));
  }
  return std::pair(shape, text.substr(name + kName.size()));
}

// A model with another value of one size, and the shapes that follow: a small file may describe a
// large model.
std::vector<std::byte> Grown(EditableFile& file, Chance& chance) {
  static constexpr const char* kSizes[] = {
      "heads",  "key_size",   "value_size", "window",    "clamp", "units", "inputs",   "capacity",
      "groups", "cache_rows", "classes",    "map_width", "width", "out",   "positions"};
  std::vector<std::byte> bytes = Pack(file);
  for (uint64_t changes = 1 + chance.Below(3); changes > 0; --changes) {
    uint8_t* const header = HeaderOf(bytes);
    const Numbers numbers = NumbersOf(header);
    const auto found = numbers.by_name().find(chance.Of(kSizes));
    if (found == numbers.by_name().end()) continue;
    const uint32_t size = uint32_t{1} << chance.Below(21);
    for (const Numbers::Place& place : found->second) {
      if (place.type == flatbuffers::ET_UINT) Write(header + (place.at - header), size);
    }
  }
  RepairModelFile(bytes);
  file = EditableFile::FromBytes(bytes);
  for (int repairs = 0; repairs < 40; ++repairs) {
    const auto wanted = ShapeWanted(OpenStatus(bytes).message());
    if (!wanted) break;
    const auto tensor = std::find_if(file.header.tensors.begin(), file.header.tensors.end(),
                                     [&](const auto& t) { return t->name == wanted->second; });
    if (tensor == file.header.tensors.end() || !Reshape(file, **tensor, wanted->first)) break;
    bytes = Pack(file);
    RepairModelFile(bytes);
  }
  return bytes;
}

}  // namespace

std::vector<std::byte> MakeOriginal(uint64_t number) {
  Chance chance(number);
  EditableFile file = RandomFile(chance);
  std::vector<std::byte> bytes = Pack(file);
  RepairModelFile(bytes);
  return bytes;
}

std::vector<std::byte> MakeMutant(uint64_t number) {
  Chance chance(number);
  EditableFile file = RandomFile(chance);
  if (chance.OneIn(5)) return Grown(file, chance);
  const uint64_t kind = chance.Below(8);
  if (kind == 0) ChangeLists(file, chance);
  if (kind == 1 || chance.OneIn(6)) ChangeSegment(file, chance);
  std::vector<std::byte> bytes = Pack(file);
  if (kind > 1) ChangeNumbers(bytes, chance.OneIn(4) ? 1 + chance.Below(4) : 1, chance);
  RepairModelFile(bytes);
  return bytes;
}

namespace {

double Seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// A call of the C interface: a status that the interface has, and a line with each refusal.
kinglet_status Check(kinglet_status status) {
  const std::string name = kinglet_status_name(status);
  Expect(name != "unknown status" && status != KINGLET_INTERNAL,
         "expected a known status, found " + name + ": " + kinglet_error_message());
  if (status != KINGLET_OK) {
    const std::string message = kinglet_error_message();
    Expect(!message.empty(), "expected a message");
    for (const char character : message) {
      Expect(static_cast<unsigned char>(character) >= 0x20, "expected one line, found " + message);
    }
  }
  return status;
}

// A model through the C interface, and all calls with it. Buffers are as large as calls are told.
class User {
 public:
  User(kinglet_model* model) : model_(model) {}
  User(const User&) = delete;
  User& operator=(const User&) = delete;
  ~User() {
    kinglet_generation_destroy(generation_);
    kinglet_beam_destroy(beam_);
    kinglet_embedding_destroy(embedding_);
    kinglet_state_destroy(state_);
    kinglet_session_destroy(session_);
    kinglet_model_close(model_);
  }

  void UseAll() {
    Check(kinglet_model_vocabulary_size(model_, &words_));
    UseWords();
    if (words_ > kMostWords) return;  // a large vocabulary would take most of the time
    UseText();
    UseEmbedding();
    kinglet_session_options options;
    kinglet_session_options_init(&options, sizeof options);
    options.lanes = 2;
    if (Check(kinglet_session_create(model_, &options, &session_)) != KINGLET_OK) return;
    UseSources();
    Step();
    UseStates();
    UsePrefixes();
    Search();
    Generate();
  }

 private:
  static constexpr uint32_t kMostWords = 1 << 17;
  static constexpr size_t kRoom = 64;

  void UseWords() {
    uint64_t needed = 0;
    uint32_t id = 0;
    int32_t has = 0;
    Check(kinglet_model_has_words(model_, &has));
    if (has != 0) {
      Check(kinglet_model_token_texts(model_, nullptr, 0, &needed, nullptr));
      char text[kRoom];
      Check(kinglet_model_token_text(model_, words_ - 1, text, sizeof text, &needed));
      Check(kinglet_model_find_token(model_, "the", 3, &id));
    }
    Check(kinglet_model_special_token(model_, KINGLET_TOKEN_UNKNOWN, &id));
    Check(kinglet_model_lane_bytes(model_, &needed));
    Check(kinglet_model_state_bytes(model_, &needed));
  }

  // Text that tokenizers look at closely, then some of the model's own words.
  std::string OwnText() {
    std::string all = "ab a</w>b the  \xE2\x96\x81 [UNK] <ab>/w @@ \xC3\xA9\xFF ||| x ";
    for (uint32_t id = 0; id < std::min<uint32_t>(words_, 12); ++id) {
      char text[kRoom];
      uint64_t needed = 0;
      if (kinglet_model_token_text(model_, id, text, sizeof text, &needed) != KINGLET_OK) break;
      all.append(text, needed - 1);
      if (id % 3 == 0) all += ' ';
    }
    return all;
  }

  void UseText() {
    const std::string given = OwnText();
    std::vector<uint32_t> ids(8192);
    uint64_t needed = 0;
    if (Check(kinglet_model_tokenize(model_, given.data(), given.size(), ids.data(), nullptr,
                                     ids.size(), &needed)) != KINGLET_OK) {
      return;
    }
    std::vector<char> text(kRoom);
    Check(kinglet_model_detokenize(model_, ids.data(), needed, text.data(), text.size(), &needed));
    Check(kinglet_model_text_segments(model_, given.data(), given.size(), nullptr, 0, &needed));
  }

  void UseEmbedding() {
    if (Check(kinglet_embedding_create(model_, &embedding_)) != KINGLET_OK) return;
    uint32_t width = 0, classes = 0;
    const uint32_t ids[] = {words_ - 1, 0};
    Check(kinglet_embedding_width(embedding_, &width));
    if (width > kMostWords) return;
    std::vector<float> vectors(2 * size_t{width});
    Check(kinglet_embedding_vectors(embedding_, ids, 2, vectors.data(), vectors.size()));
    Check(kinglet_embedding_classes(embedding_, &classes));
    std::vector<double> logits(classes), logs(classes);
    Check(kinglet_embedding_classify(embedding_, ids, 2, logits.data(), logs.data(), classes));
  }

  void UseSources() {
    const uint32_t ids[] = {0, words_ - 1};
    Check(kinglet_session_encode(session_, 0, ids, 2));
    uint32_t pooled = 0, scores = 0;
    if (Check(kinglet_session_read(session_, 0, ids, nullptr, 2)) != KINGLET_OK) return;
    Check(kinglet_session_look_at(session_, 0, 1));
    Check(kinglet_model_pooled_width(model_, &pooled));
    Check(kinglet_model_score_count(model_, &scores));
    if (pooled > kMostWords || scores > kMostWords) return;
    std::vector<double> out(std::max(pooled, scores));
    Check(kinglet_session_pooled(session_, 0, out.data(), out.size()));
    Check(kinglet_session_scores(session_, 0, 0, out.data(), out.size()));
  }

  void Step() {
    std::vector<float> all(words_);
    for (const uint32_t id : {uint32_t{0}, words_ - 1, words_ / 2}) {
      const uint32_t lanes[] = {0, 1}, ids[] = {id, id};
      Check(kinglet_session_step_lanes(session_, lanes, ids, 2));
      uint32_t best[5], count = 0, drawn = 0;
      double numbers[5];
      if (Check(kinglet_session_top_k(session_, 0, 5, best, numbers, 5, &count)) == KINGLET_OK) {
        for (uint32_t i = 0; i < count; ++i) {
          Expect(best[i] < words_ && numbers[i] <= 1e-3, "expected words and log-probabilities");
        }
      }
      Check(kinglet_session_log_probabilities(session_, 0, all.data(), all.size()));
      Check(kinglet_session_draw(session_, 1, 7, nullptr, &drawn));
    }
    const std::vector<uint32_t> many(40, words_ / 3);
    std::vector<double> logs(many.size());
    uint64_t processed = 0;
    Check(kinglet_session_step_many(session_, 0, many.data(), 10, nullptr, nullptr));
    Check(
        kinglet_session_step_many(session_, 0, many.data(), many.size(), logs.data(), &processed));
  }

  void UseStates() {
    if (Check(kinglet_session_save(session_, 0, &state_)) != KINGLET_OK) return;
    uint64_t bytes = 0;
    Check(kinglet_session_restore(session_, 1, state_));
    Check(kinglet_state_write(state_, nullptr, 0, &bytes));
    if (bytes > (uint64_t{1} << 24)) return;
    std::vector<std::byte> blob(bytes);
    kinglet_state* read = nullptr;
    Check(kinglet_state_write(state_, blob.data(), blob.size(), &bytes));
    Check(kinglet_state_read(model_, blob.data(), blob.size(), &read));
    kinglet_state_destroy(read);
  }

  void UsePrefixes() {
    double probability = 0;
    uint64_t steps = 0;
    uint32_t characters[kRoom], count = 0;
    double numbers[kRoom];
    Check(kinglet_session_text_probability(session_, 0, " the", 4, 100, &probability, &steps));
    Check(kinglet_session_text_next_characters(session_, 0, "w", 1, 100, characters, numbers, kRoom,
                                               &count, &steps));
    Check(kinglet_session_next_characters(session_, 0, "w", 1, characters, numbers, kRoom, &count));
    const uint32_t parents[] = {KINGLET_NO_PARENT, 0}, ids[] = {0, words_ - 1};
    Check(kinglet_session_score_tree(session_, parents, ids, 2, numbers, &steps));
  }

  void Search() {
    const kinglet_beam_options options = {sizeof options, 0, 2, 1, 1, nullptr};
    if (Check(kinglet_beam_create(model_, &options, &beam_)) != KINGLET_OK) return;
    uint64_t hypotheses[] = {0, 0};
    const uint32_t ids[] = {0, words_ - 1};
    double numbers[2];
    Check(kinglet_beam_begin(beam_, nullptr, hypotheses));
    hypotheses[1] = hypotheses[0];
    Check(kinglet_beam_step(beam_, hypotheses, ids, 2, hypotheses));
    Check(kinglet_beam_log_probability(beam_, hypotheses, ids, 2, numbers));
    Check(kinglet_beam_drop(beam_, hypotheses, 2));
  }

  void Generate() {
    kinglet_generation_options options;
    kinglet_generation_options_init(&options, sizeof options);
    options.tokens = 3;
    const uint32_t prompt[] = {0};
    if (Check(kinglet_generation_create(model_, &options, prompt, 1, &generation_)) != KINGLET_OK) {
      return;
    }
    int32_t more = 1;
    while (Check(kinglet_generation_next(generation_, &more)) == KINGLET_OK && more != 0) {
    }
    std::vector<char> text(kRoom);
    uint64_t needed = 0;
    Check(kinglet_generation_text(generation_, 0, text.data(), text.size(), &needed));
  }

  kinglet_model* model_;
  uint32_t words_ = 0;
  kinglet_session* session_ = nullptr;
  kinglet_state* state_ = nullptr;
  kinglet_embedding* embedding_ = nullptr;
  kinglet_generation* generation_ = nullptr;
  kinglet_beam* beam_ = nullptr;
};

}  // namespace

MutantUse UseMutant(std::span<const std::byte> file) {
  MutantUse use;
  for (const char* backend : {"cpu", "ref"}) {
    for (const uint64_t limit : {uint64_t{0}, uint64_t{1} << 22}) {
      kinglet_model_options options;
      kinglet_model_options_init(&options, sizeof options);
      options.backend = backend;
      options.memory_limit = limit;
      options.session_memory_limit = uint64_t{32} << 20;
      kinglet_model* model = nullptr;
      const double begin = Seconds();
      const kinglet_status status =
          Check(kinglet_model_open_memory(file.data(), file.size(), &options, &model));
      const double opened = Seconds();
      use.open_seconds = std::max(use.open_seconds, opened - begin);
      if (status != KINGLET_OK) continue;
      use.opened = true;
      User(model).UseAll();
      use.use_seconds = std::max(use.use_seconds, Seconds() - opened);
    }
  }
  return use;
}

}  // namespace kinglet::fuzz
