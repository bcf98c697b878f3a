#include "tools/coded_tables.h"

#include <algorithm>
#include <cstdio>

#include "tools/console.h"
#include "tools/model_facts.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

constexpr size_t kTableColumns = 30;

CodedTableFacts FactsOf(const TensorView& table, const CodedView& coded, const TensorFacts& stored,
                        const TensorFacts& codebook) {
  const CodingScheme& scheme = coded.scheme;
  CodedTableFacts facts;
  facts.name = table.name;
  facts.encoding = stored.encoding;
  facts.codebook = codebook.encoding;
  facts.rows = Rows(table.shape);
  facts.columns = Cols(table.shape);
  facts.positions = scheme.positions;
  facts.choices = *std::max_element(scheme.pools.begin(), scheme.pools.end());
  facts.sub_vectors = scheme.PoolTotal();
  facts.codes_bytes = stored.Bytes();
  facts.codebook_bytes = codebook.Bytes();
  facts.ratios = RatiosOf({facts.rows, facts.columns, facts.positions, scheme.pools,
                           SubVectorLength(scheme, facts.columns), !coded.seed});
  facts.slim_ratio = SlimRatio(facts.sub_vectors, facts.positions, facts.rows);
  return facts;
}

}  // namespace

double CodedTableFacts::StoredRatio() const {
  return static_cast<double>(rows * columns * sizeof(float)) /
         static_cast<double>(codes_bytes + codebook_bytes);
}

std::vector<CodedTableFacts> CodedTablesOf(const ModelFile& file) {
  const ModelFacts facts = DescribeModel(file);
  std::vector<CodedTableFacts> tables;
  for (size_t i = 0; i < file.tensors().size(); ++i) {
    const TensorView& tensor = file.tensors()[i];
    const CodedView* coded = tensor.coded();
    if (coded == nullptr) continue;
    tables.push_back(
        FactsOf(tensor, *coded, facts.tensors[i], facts.tensors[coded->scheme.codebook]));
  }
  return tables;
}

std::string CodedTablesText(std::span<const CodedTableFacts> tables) {
  if (tables.empty()) return "";
  std::string text = "\n" + FittedText("coded table", kTableColumns);
  const auto row = [&text](const char* shape, const char* codes, const char* codes_bytes,
                           const char* codebook_bytes, const char* plain, const char* published,
                           const char* slim, const char* stored) {
    char cells[256];
    std::snprintf(cells, sizeof(cells), "%16s%12s%14s%14s%10s%10s%10s%10s\n", shape, codes,
                  codes_bytes, codebook_bytes, plain, published, slim, stored);
    text += cells;
  };
  row("shape", "codes", "code bytes", "codebook", "ratio", "(d + 1)", "M/(K V)", "stored");
  const auto number = [](double value, const char* format) {
    char digits[32];
    std::snprintf(digits, sizeof(digits), format, value);
    return std::string(digits);
  };
  for (const CodedTableFacts& table : tables) {
    text += FittedText(table.name, kTableColumns);
    row((std::to_string(table.rows) + " x " + std::to_string(table.columns)).c_str(),
        (std::to_string(table.positions) + " of " + std::to_string(table.choices)).c_str(),
        Grouped(table.codes_bytes).c_str(), Grouped(table.codebook_bytes).c_str(),
        number(table.ratios.plain, "%.2f").c_str(), number(table.ratios.published, "%.2f").c_str(),
        number(table.slim_ratio, "%.5f").c_str(), number(table.StoredRatio(), "%.2f").c_str());
  }
  return text;
}

void AppendCodedTables(std::span<const CodedTableFacts> tables, JsonLine& line) {
  line.Key("tables").BeginArray();
  for (const CodedTableFacts& table : tables) {
    line.BeginObject().Key("name").Text(table.name).Key("encoding").Text(table.encoding);
    line.Key("codebook").Text(table.codebook);
    line.Key("rows").Integer(table.rows).Key("columns").Integer(table.columns);
    line.Key("positions").Integer(table.positions).Key("choices").Integer(table.choices);
    line.Key("sub_vectors").Integer(table.sub_vectors);
    line.Key("codes_bytes").Integer(table.codes_bytes);
    line.Key("codebook_bytes").Integer(table.codebook_bytes);
    line.Key("ratio").Number(table.ratios.plain);
    line.Key("ratio_with_bias").Number(table.ratios.published);
    line.Key("slim_ratio").Number(table.slim_ratio);
    line.Key("stored_ratio").Number(table.StoredRatio()).EndObject();
  }
  line.EndArray();
}

}  // namespace kinglet
