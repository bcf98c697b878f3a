#include "converters/tokenizers/sentence_piece_file.h"

#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "converters/checkpoints/varint_reader.h"
#include "converters/tokenizers/character_map.h"
#include "converters/tokenizers/checked_tables.h"
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

using Field = ProtoField;
using FieldSink = std::function<Status(const Field&)>;

// `file` is what the message is a part of; refusals count its bytes.
Status ForEachField(std::string_view message, std::string_view file, const FieldSink& sink) {
  ProtoReader reader(message);
  while (const std::optional<Field> field = reader.Next()) {
    KINGLET_RETURN_IF_ERROR(sink(*field));
  }
  if (!reader.failed()) return {};
  const auto at = static_cast<uint64_t>(message.data() + message.size() - file.data());
  return RefuseProto(Numbered("byte", at - reader.left()), reader.expected(), "other bytes");
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
      if (field.number == 1) return AddPiece(field.bytes);
      if (field.number == 2) return ReadTrainer(field.bytes);
      if (field.number == 3) return ReadNormaliser(field.bytes, tables_.normaliser);
      if (field.number == 5) return ReadNormaliser(field.bytes, tables_.denormaliser);
      return Status();
    }));
    return std::move(tables_);
  }

 private:
  template <class T>
  static Status Enumerator(const char* what, const Field& field, T last, T& out) {
    const auto largest = static_cast<uint64_t>(last) + 1;
    if (field.value == 0 || field.value > largest) {
      return RefuseProto(what, "1 to " + std::to_string(largest), std::to_string(field.value));
    }
    out = static_cast<T>(field.value - 1);
    return {};
  }

  Status AddPiece(std::string_view message) {
    if (tables_.pieces.size() == kMaxPieces) {
      return RefuseProto("pieces", "at most " + std::to_string(kMaxPieces), "more");
    }
    Piece& piece = tables_.pieces.emplace_back();
    return ForEachField(message, file_, [&](const Field& field) {
      if (field.number == 1 && field.delimited) piece.text = field.bytes;
      if (field.number == 2) piece.score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
      if (field.number == 3) return Enumerator("piece type", field, Type::kByte, piece.type);
      return Status();
    });
  }

  Status ReadTrainer(std::string_view message) {
    return ForEachField(message, file_, [&](const Field& field) {
      if (field.number == 3) {
        return Enumerator("model_type", field, Algorithm::kCharacter, tables_.algorithm);
      }
      if (field.number == 24) tables_.space_suffix = field.value != 0;
      if (field.number == 35) tables_.byte_fallback = field.value != 0;
      if (field.number == 44 && field.delimited) tables_.unknown_surface = field.bytes;
      return Status();
    });
  }

  Status ReadNormaliser(std::string_view message, NormaliserTables& tables) {
    return ForEachField(message, file_, [&](const Field& field) {
      if (field.number == 2 && field.delimited) {
        Result<std::vector<NormaliserTables::Rule>> rules = ReadCharacterMap(field.bytes);
        if (!rules.ok()) return rules.status();
        tables.rules = std::move(rules).value();
      }
      if (field.number == 3) tables.dummy_prefix = field.value != 0;
      if (field.number == 4) tables.trim = field.value != 0;
      if (field.number == 5) tables.escape = field.value != 0;
      return Status();
    });
  }

  std::string_view file_;
  SentencePieceTables tables_;
};

}  // namespace

Result<SentencePieceTables> ReadSentencePieceModel(std::string_view bytes) {
  KINGLET_ASSIGN_OR_RETURN(SentencePieceTables tables, ModelReader(bytes).Read());
  return CheckedTables(std::move(tables));
}

}  // namespace kinglet
