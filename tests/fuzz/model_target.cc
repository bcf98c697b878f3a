#include <algorithm>
#include <vector>

#include "format/coded_rows.h"
#include "format/model_file.h"
#include "tests/fuzz/targets.h"
#include "tests/fuzz/use_model.h"

namespace kinglet::fuzz {
namespace {

void ReadTensors(const ModelFile& file) {
  constexpr uint64_t kMostEntries = uint64_t{1} << 20;
  for (const TensorView& tensor : file.tensors()) {
    if (const CodedView* coded = tensor.coded()) {
      const CodedRows rows(tensor);
      std::vector<uint32_t> parts(rows.positions());
      for (uint64_t row = 0; row < std::min<uint64_t>(Rows(tensor.shape), 100); ++row) {
        rows.CodebookRows(row, parts.data());
        for (const uint32_t part : parts) {
          Expect(part < coded->scheme.PoolTotal(), "expected a row of the codebook");
        }
      }
    } else if (Count(tensor.shape) <= kMostEntries) {
      (void)DecodedValues(tensor);
      if (tensor.quantised()) (void)DecodeCodes(tensor);
    }
  }
}

}  // namespace

void RunModelFile(Input input) {
  const auto file = ModelFile::FromBytes(input);
  ExpectOneLine(file.status());
  if (!file.ok()) return;
  Expect((*file)->file_size() == input.size(), "expected the size of the file");
  Expect((*file)->ledger().Total() == input.size(), "expected an account of every byte");
  ReadTensors(**file);
  if (const Vocabulary* words = (*file)->vocabulary()) {
    for (uint32_t id = 0; id < words->size(); ++id) {
      Expect(words->Find(words->Word(id)) == id, "expected to find every word");
    }
  }
  for (const char* backend : {"ref", "cpu"}) {
    const auto model = OpenLimited(*file, backend);
    ExpectOneLine(model.status());
    if (model.ok()) UseModel(*model);
  }
}

}  // namespace kinglet::fuzz
