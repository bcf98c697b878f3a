// The table of `kinglet table` for a paper, a spreadsheet or a program. Pure functions.
#ifndef KINGLET_TOOLS_TABLE_FORMATS_H_
#define KINGLET_TOOLS_TABLE_FORMATS_H_

#include <string>

#include "tools/table_rows.h"

namespace kinglet {

// Millions, five significant digits, notes below.
std::string TableMarkdown(const Table& table);
// A tabular without packages; notes are comments.
std::string TableLatex(const Table& table);
// All digits, without notes: RFC 4180, a header of JSON's keys; a line of JSON for each row.
std::string TableCsv(const Table& table);
std::string TableJson(const Table& table);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_TABLE_FORMATS_H_
