// The model of a file with its coded tables and DeFINE units replaced by equivalent dense tables,
// by their equations. All other parts, including activation quantisers, do not change.
#ifndef KINGLET_TESTS_CONVERTERS_DENSE_COUNTERPART_H_
#define KINGLET_TESTS_CONVERTERS_DENSE_COUNTERPART_H_

#include <cstddef>
#include <string>
#include <vector>

namespace kinglet {

// The counterpart's bytes. Rows of embeddings are exact to 48 bits, those of a softmax are rounded
// to float32.
// REQUIRES: units have a matrix for each group, no norms, and put their input first.
std::vector<std::byte> DenseCounterpart(const std::string& path);

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_DENSE_COUNTERPART_H_
