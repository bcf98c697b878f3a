// The figures of models next to each other, as the tables of papers have them. Each is that of a
// command: `count`, `score` or `bench`.
#ifndef KINGLET_TOOLS_TABLE_ROWS_H_
#define KINGLET_TOOLS_TABLE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "converters/texts/text_size.h"
#include "kinglet/status.h"
#include "runtime/model.h"
#include "tools/console.h"
#include "tools/loss_totals.h"
#include "tools/run_options.h"

namespace kinglet {

struct TableOptions {
  RunOptions run;  // without a model
  std::vector<std::string> models;
  std::string text, test;  // paths of the validation text and of the test text, which may be empty
  uint64_t timed = 0;      // steps
  std::string format = "markdown", plot;
};

// A row; nullopt where a figure cannot be had, and then a note has the reason.
struct ModelRow {
  std::string model;                        // path
  uint64_t parameters = 0;                  // as `count`
  std::optional<double> words, operations;  // 32-bit words, and per token: as micronet-2019 counts
  uint64_t bytes = 0;                       // of the file
  std::optional<double> ppl, test_ppl;      // of a token, or of a word (Table::per_word)
  std::optional<double> us_per_token;       // median time of a token and its full distribution
  std::optional<double> score;              // of the MicroNet challenge
};

struct Table {
  std::vector<ModelRow> rows;
  bool has_test = false;
  bool per_word = false;           // perplexities are per word, since vocabularies differ
  std::vector<std::string> notes;  // sentences about the table, without line ends
};

// Opens, scores and times one model after the other. Errors: those of opening a model and of
// reading the texts; KINGLET_INVALID_ARGUMENT if a model scores no token of a text.
Result<Table> MeasureTable(const TableOptions& options, const Console& console);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_TABLE_ROWS_H_
