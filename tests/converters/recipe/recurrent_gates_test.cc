// tests/examples/recipes_test.cc converts networks of every order against golden values.
#include "converters/recipe/recurrent_gates.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/converters/recipe/recipe_source.h"

namespace kinglet::recurrent_gates_test {
namespace {

RecurrentGates Gates(const std::string& members, RecurrentCell cell) {
  const auto gates = ParseRecurrentGates(NodeOf("{" + members + "}"), cell);
  EXPECT_TRUE(gates.ok()) << gates.status().message();
  return gates.ok() ? *gates : RecurrentGates();
}

// Two rows for each gate of a checkpoint, in the order of the model's gates.
std::vector<float> Arranged(const std::string& members, RecurrentCell cell, bool bias) {
  std::vector<float> values;
  for (uint32_t row = 0; row < 2 * GatesOf(cell); ++row) {
    values.push_back(static_cast<float>(10 * (row / 2) + row % 2 + 1));
  }
  const Change change = ArrangedGates(Gates(members, cell), cell, bias);
  return *change.Apply(values);
}

TEST(RecurrentGates, BlocksGoWhereTheModelHasThem) {
  using Values = std::vector<float>;
  const RecurrentCell lstm = RecurrentCell::kLstm, gru = RecurrentCell::kGru;
  const std::string zero = R"(, "forget_bias": 0)";
  const Values same = {1, 2, 11, 12, 21, 22, 31, 32}, swapped = {1, 2, 21, 22, 11, 12, 31, 32};
  EXPECT_EQ(Arranged(R"("gates": "ifgo")" + zero, lstm, true), same);
  EXPECT_EQ(Arranged(R"("gates": "ifco")" + zero, lstm, true), same);
  EXPECT_EQ(Arranged(R"("gates": "ijfo")" + zero, lstm, false), swapped);
  EXPECT_EQ(Arranged(R"("gates": "igfo")" + zero, lstm, false), swapped);
  EXPECT_EQ(Arranged(R"("gates": "ogfi")" + zero, lstm, false),
            (Values{31, 32, 21, 22, 11, 12, 1, 2}));
  EXPECT_EQ(Arranged(R"("gates": "ijfo", "forget_bias": 1.5)", lstm, true),
            (Values{1, 2, 22.5, 23.5, 11, 12, 31, 32}));
  EXPECT_EQ(Arranged(R"("gates": "ijfo", "forget_bias": 1.5)", lstm, false), swapped);

  const std::string after = R"(, "reset": "after", "weighs": )";
  EXPECT_EQ(Arranged(R"("gates": "rzn")" + after + R"("old")", gru, true),
            (Values{1, 2, 11, 12, 21, 22}));
  EXPECT_EQ(Arranged(R"("gates": "zrh")" + after + R"("old")", gru, true),
            (Values{11, 12, 1, 2, 21, 22}));
  EXPECT_EQ(Arranged(R"("gates": "zrh")" + after + R"("new")", gru, true),
            (Values{11, 12, -1, -2, 21, 22}));
  EXPECT_EQ(Arranged(R"("gates": "zfo", "weighs": "new")", RecurrentCell::kQrnn, true),
            (Values{1, 2, 11, 12, 21, 22}));
  EXPECT_EQ(Arranged(R"("gates": "fzo", "weighs": "old")", RecurrentCell::kQrnn, true),
            (Values{11, 12, -1, -2, 21, 22}));
  EXPECT_EQ(Arranged("", RecurrentCell::kTanh, true), (Values{1, 2}));
}

TEST(RecurrentGates, AChangeThatDoesNothingIsNone) {
  EXPECT_EQ(ArrangedGates(Gates(R"("gates": "ifgo", "forget_bias": 0)", RecurrentCell::kLstm),
                          RecurrentCell::kLstm, true)
                .Text(),
            "");
  const RecurrentGates gates = Gates(R"("gates": "ijfo", "forget_bias": 1)", RecurrentCell::kLstm);
  EXPECT_NE(ArrangedGates(gates, RecurrentCell::kLstm, true).Text(),
            ArrangedGates(gates, RecurrentCell::kLstm, false).Text());
  // Values of another size than the cell's stay as they are: the check of the model refuses them.
  const std::vector<float> odd = {1, 2, 3};
  EXPECT_EQ(*ArrangedGates(gates, RecurrentCell::kLstm, true).Apply(odd), odd);
  EXPECT_EQ(ForgetBiasAlone(gates, 2), (std::vector<float>{0, 0, 1, 1, 0, 0, 0, 0}));
}

TEST(RecurrentGates, NothingIsTakenForGranted) {
  const RecurrentCell lstm = RecurrentCell::kLstm, gru = RecurrentCell::kGru;
  const struct {
    const char* members;
    RecurrentCell cell;
    const char* refusal;
  } cases[] = {
      {"", lstm,
       "r, line 1, column 1: expected \"gates\", the order of the gates' blocks of rows: \"ifgo\" "
       "(PyTorch, Keras) or \"ijfo\" (TensorFlow's LSTM cells), found none"},
      {R"("gates": "ifo")", lstm,
       "line 1, column 11, /gates: expected \"ifgo\" (PyTorch, Keras) or \"ijfo\" (TensorFlow's "
       "LSTM cells), found 'ifo'"},
      {R"("gates": "iiff")", lstm, "/gates: expected \"ifgo\""},
      {R"("gates": "ifgogo")", lstm, "/gates: expected \"ifgo\""},
      {R"("gates": "rzn")", lstm, "/gates: expected \"ifgo\""},
      {R"("gates": 3)", lstm, "/gates: expected a text, found 3"},
      {R"("gates": "ifgo")", lstm,
       "expected \"forget_bias\", what the cell adds to f when it runs"},
      {R"("gates": "ifgo", "forget_bias": 1e9)", lstm, "a number from -1000 to 1000"},
      {R"("gates": "ifgo", "forget_bias": 1, "weighs": "old")", lstm,
       "/weighs: expected no such key for this cell (delete it), found 'old'"},
      {"", gru, "\"rzn\" (PyTorch) or \"zrn\" (Keras), found none"},
      {R"("gates": "rzn")", gru, "expected \"weighs\", what z multiplies: \"old\""},
      {R"("gates": "rzn", "weighs": "old")", gru, "expected \"reset\": \"after\": r multiplies"},
      {R"("gates": "rzn", "weighs": "old", "reset": "before")", gru,
       "/reset: expected \"after\": r multiplies the product with the previous output, as in "
       "PyTorch and Keras' reset_after, found 'before', which no model file can store"},
      {R"("gates": "rzn", "weighs": "old", "forget_bias": 0)", gru,
       "/forget_bias: expected no such key"},
      {"", RecurrentCell::kQrnn, "expected \"gates\""},
      {R"("gates": "zfo")", RecurrentCell::kQrnn,
       "expected \"weighs\", what f multiplies: \"old\""},
      {R"("gates": "zfo", "weighs": "new", "reset": "after")", RecurrentCell::kQrnn,
       "/reset: expected no such key for this cell"},
      {R"("gates": "i")", RecurrentCell::kTanh,
       "/gates: expected no such key for this cell (delete it), found 'i'"},
  };
  for (const auto& [members, cell, refusal] : cases) {
    const Status status =
        ParseRecurrentGates(NodeOf("{" + std::string(members) + "}"), cell).status();
    EXPECT_EQ(status.code(), KINGLET_INVALID_ARGUMENT) << members;
    EXPECT_NE(status.message().find(refusal), std::string::npos) << status.message();
  }
}

TEST(RecurrentGates, AreRefusedWithAModule) {
  EXPECT_TRUE(RefuseRecurrentGates(NodeOf(R"({"cell": "lstm"})")).ok());
  for (const char* key : {"gates", "forget_bias", "weighs", "reset"}) {
    const Status status = RefuseRecurrentGates(NodeOf("{\"" + std::string(key) + "\": \"x\"}"));
    EXPECT_NE(
        status.message().find(
            "expected no such key with \"torch\", which fixes the gates (delete it), found 'x'"),
        std::string::npos)
        << status.message();
  }
}

}  // namespace
}  // namespace kinglet::recurrent_gates_test
