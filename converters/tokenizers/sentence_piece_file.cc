// Protobuf's wire format, as far as a ModelProto uses it.
#include "converters/tokenizers/sentence_piece_file.h"

#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "converters/tokenizers/character_map.h"
#include "format/little_endian.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

using Algorithm = SentencePieceTables::Algorithm;
using Piece = SentencePieceTables::Piece;
using Type = SentencePieceTables::Type;

Status RefuseProto(const std::string& where, const std::string& expected,
                   const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "SentencePiece model", where, expected, found);
}

struct Field {
  uint64_t number = 0;
  uint64_t integer = 0;   // of a varint, and the bits of a fixed number
  std::string_view text;  // of a length-delimited field
  bool delimited = false;
};

class ProtoReader {
 public:
  // `offset` is where the message begins in the file, for refusals.
  ProtoReader(std::string_view bytes, std::string_view file) : rest_(bytes), file_(file) {}

  bool done() const { return rest_.empty(); }

  Result<Field> Next() {
    uint64_t key = 0;
    Field field;
    if (!Varint(key) || key >> 3 == 0) return Broken("a field");
    field.number = key >> 3;
    switch (key & 7U) {
      case 0:
        if (!Varint(field.integer)) return Broken("a varint");
        return field;
      case 1:
        if (!Fixed<uint64_t>(field.integer)) return Broken("eight bytes");
        return field;
      case 2: {
        uint64_t size = 0;
        if (!Varint(size) || size > rest_.size()) return Broken("a field inside its message");
        field.text = rest_.substr(0, size);
        field.delimited = true;
        rest_.remove_prefix(size);
        return field;
      }
      case 5:
        if (!Fixed<uint32_t>(field.integer)) return Broken("four bytes");
        return field;
      default:
        return Broken("a wire type of 0, 1, 2 or 5");
    }
  }

  Status Broken(const std::string& expected) const {
    const auto at = static_cast<uint64_t>(rest_.data() - file_.data());
    return RefuseProto(Numbered("byte", at), expected, "other bytes");
  }

 private:
  bool Varint(uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return false;
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  template <class T>
  bool Fixed(uint64_t& value) {
    if (rest_.size() < sizeof(T)) return false;
    value = LoadLittle<T>(std::as_bytes(std::span(rest_)).data());
    rest_.remove_prefix(sizeof(T));
    return true;
  }

  std::string_view rest_;
  std::string_view file_;
};

using FieldSink = std::function<Status(const Field&)>;

Status ForEachField(std::string_view message, std::string_view file, const FieldSink& sink) {
  ProtoReader reader(message, file);
  while (!reader.done()) {
    KINGLET_ASSIGN_OR_RETURN(const Field field, reader.Next());
    KINGLET_RETURN_IF_ERROR(sink(field));
  }
  return {};
}

class ModelReader {
 public:
  explicit ModelReader(std::string_view file) : file_(file) {}

  Result<SentencePieceTables> Read() {
    tables_.unknown_surface = " \xE2\x81\x87 ";
    for (NormaliserTables* tables : {&tables_.normaliser, &tables_.denormaliser}) {
      tables->dummy_prefix = tables->trim = tables->escape = true;
    }
    KINGLET_RETURN_IF_ERROR(ForEachField(file_, file_, [this](const Field& field) {
      if (!field.delimited) return Status();
      if (field.number == 1) return AddPiece(field.text);
      if (field.number == 2) return ReadTrainer(field.text);
      if (field.number == 3) return ReadNormaliser(field.text, tables_.normaliser);
      if (field.number == 5) return ReadNormaliser(field.text, tables_.denormaliser);
      return Status();
    }));
    return std::move(tables_);
  }

 private:
  template <class T>
  static Status Enumerator(const char* what, const Field& field, T last, T& out) {
    const auto largest = static_cast<uint64_t>(last) + 1;
    if (field.integer == 0 || field.integer > largest) {
      return RefuseProto(what, "1 to " + std::to_string(largest), std::to_string(field.integer));
    }
    out = static_cast<T>(field.integer - 1);
    return {};
  }

  Status AddPiece(std::string_view message) {
    if (tables_.pieces.size() == kMaxPieces) {
      return RefuseProto("pieces", "at most " + std::to_string(kMaxPieces), "more");
    }
    Piece& piece = tables_.pieces.emplace_back();
    return ForEachField(message, file_, [&](const Field& field) {
      if (field.number == 1 && field.delimited) piece.text = field.text;
      if (field.number == 2)
        piece.score = std::bit_cast<float>(static_cast<uint32_t>(field.integer));
      if (field.number == 3) return Enumerator("piece type", field, Type::kByte, piece.type);
      return Status();
    });
  }

  Status ReadTrainer(std::string_view message) {
    return ForEachField(message, file_, [&](const Field& field) {
      if (field.number == 3) {
        return Enumerator("model_type", field, Algorithm::kCharacter, tables_.algorithm);
      }
      if (field.number == 24) tables_.space_suffix = field.integer != 0;
      if (field.number == 35) tables_.byte_fallback = field.integer != 0;
      if (field.number == 44 && field.delimited) tables_.unknown_surface = field.text;
      return Status();
    });
  }

  Status ReadNormaliser(std::string_view message, NormaliserTables& tables) {
    return ForEachField(message, file_, [&](const Field& field) {
      if (field.number == 2 && field.delimited) {
        Result<std::vector<NormaliserTables::Rule>> rules = ReadCharacterMap(field.text);
        if (!rules.ok()) return rules.status();
        tables.rules = std::move(rules).value();
      }
      if (field.number == 3) tables.dummy_prefix = field.integer != 0;
      if (field.number == 4) tables.trim = field.integer != 0;
      if (field.number == 5) tables.escape = field.integer != 0;
      return Status();
    });
  }

  std::string_view file_;
  SentencePieceTables tables_;
};

}  // namespace

Result<SentencePieceTables> ReadSentencePieceModel(std::string_view bytes) {
  KINGLET_ASSIGN_OR_RETURN(SentencePieceTables tables, ModelReader(bytes).Read());
  TextTables tables_of_file{false, std::move(tables)};
  KINGLET_RETURN_IF_ERROR(CheckTextTables(KINGLET_INVALID_CHECKPOINT, tables_of_file));
  return std::get<SentencePieceTables>(std::move(tables_of_file.method));
}

}  // namespace kinglet
