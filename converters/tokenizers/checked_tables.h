// The last step of every reader of a tokenizer's file.
#ifndef KINGLET_CONVERTERS_TOKENIZERS_CHECKED_TABLES_H_
#define KINGLET_CONVERTERS_TOKENIZERS_CHECKED_TABLES_H_

#include <utility>
#include <variant>

#include "format/text_tables.h"
#include "kinglet/status.h"

namespace kinglet {

// The tables of one kind, as a model file takes them. Errors: those of CheckTextTables,
// KINGLET_INVALID_CHECKPOINT.
template <class Tables>
Result<Tables> CheckedTables(Tables tables) {
  TextTables checked{false, std::move(tables)};
  KINGLET_RETURN_IF_ERROR(CheckTextTables(KINGLET_INVALID_CHECKPOINT, checked));
  return std::get<Tables>(std::move(checked.method));
}

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TOKENIZERS_CHECKED_TABLES_H_
