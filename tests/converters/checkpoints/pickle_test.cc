#include "converters/checkpoints/pickle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "tests/converters/files.h"
#include "tests/support/change_stride.h"

namespace kinglet::pickle_test {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

template <class T>
T ValueOf(const PickleNode* node) {
  if (node == nullptr || node->As<T>() == nullptr) {
    ADD_FAILURE() << (node == nullptr ? "null" : node->Describe());
    return T();
  }
  return *node->As<T>();
}

std::vector<PickleNode*> Items(const PickleNode* node) { return ValueOf<PickleList>(node).items; }

std::string Refusal(std::string_view pickle) {
  const Result<PickleGraph> graph = ReadPickle(Bytes(pickle), 1000);
  if (graph.ok()) return "accepted as " + graph->root->Describe();
  EXPECT_EQ(graph.status().code(), KINGLET_INVALID_CHECKPOINT);
  return graph.status().message();
}

std::string Repeated(std::string_view text, size_t times) {
  std::string out;
  out.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

// Equal objects (make_fixtures.py), as each protocol of Python's pickler wrote them.
class Protocols : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Pickle, Protocols, testing::Range(0, 6));

TEST_P(Protocols, ReadsWhatPythonWrote) {
  const std::string bytes = Fixture("objects_protocol" + std::to_string(GetParam()) + ".pkl");
  const Result<PickleGraph> graph = ReadPickle(Bytes(bytes), 0);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->bytes_read, bytes.size());
  const PickleNode& root = *graph->root;

  std::vector<int64_t> integers;
  for (const PickleNode* item : Items(root.Find("integers"))) {
    integers.push_back(ValueOf<int64_t>(item));
  }
  EXPECT_EQ(integers, (std::vector<int64_t>{0, 1, -1, 255, 256, 65535, 65536, -2147483648LL,
                                            2147483648LL, INT64_MAX, INT64_MIN}));
  std::vector<double> floats;
  for (const PickleNode* item : Items(root.Find("floats"))) floats.push_back(ValueOf<double>(item));
  EXPECT_EQ(floats, (std::vector<double>{0.0, -0.5, 1e300, 5e-324}));
  EXPECT_EQ(ValueOf<std::string>(root.Find("text")), "café 世 😀 \\ 'q'\n");
  EXPECT_EQ(root.Find("none")->Describe(), "None");
  EXPECT_TRUE(ValueOf<bool>(Items(root.Find("booleans")).at(0)));
  EXPECT_FALSE(ValueOf<bool>(Items(root.Find("booleans")).at(1)));
  const std::vector<PickleNode*> tuples = Items(root.Find("tuples"));
  ASSERT_EQ(tuples.size(), 5U);
  for (size_t i = 0; i < tuples.size(); ++i) {
    const std::vector<PickleNode*> tuple = Items(tuples[i]);
    ASSERT_EQ(tuple.size(), i);
    for (size_t j = 0; j < i; ++j) EXPECT_EQ(ValueOf<int64_t>(tuple[j]), static_cast<int>(j) + 1);
  }
  EXPECT_EQ(Items(root.Find("shared")).at(0), Items(root.Find("shared")).at(1));
  for (const char* key : {"ordered", "counter"}) {
    EXPECT_EQ(ValueOf<PickleDict>(root.Find(key)).items.size(), 2U) << key;
  }
  EXPECT_EQ(ValueOf<int64_t>(root.Find("ordered")->Find("b")), 2);
  EXPECT_EQ(ValueOf<int64_t>(root.Find("counter")->Find("a")), 2);
  EXPECT_EQ(ValueOf<int64_t>(Items(root.Find("default")->Find("k")).at(0)), 3);
  EXPECT_EQ(ValueOf<int64_t>(Items(root.Find("set")).at(0)), 7);
  EXPECT_EQ(ValueOf<int64_t>(Items(root.Find("frozen")).at(0)), 8);
  EXPECT_EQ(ValueOf<int64_t>(root.Find("nested")->Find("a")->Find("b")->Find("c")), 4);

  const PickleNode* cyclic = root.Find("cyclic");
  const auto object = ValueOf<PickleObject>(cyclic);
  EXPECT_EQ(object.class_name, "model.Cyclic");
  EXPECT_EQ(Items(object.state).at(0), cyclic);
  EXPECT_EQ(ValueOf<std::string>(Items(object.state).at(1)), "state");
}

TEST_P(Protocols, RefusesEveryPrefix) {
  const std::string bytes = Fixture("objects_protocol" + std::to_string(GetParam()) + ".pkl");
  for (size_t length = 0; length < bytes.size(); length += kChangeStride) {
    // A copy of exactly this size, so that a sanitizer notices reads past its end.
    const std::vector<char> prefix(bytes.begin(),
                                   bytes.begin() + static_cast<std::ptrdiff_t>(length));
    const Result<PickleGraph> graph =
        ReadPickle(Bytes(std::string_view(prefix.data(), prefix.size())), 0);
    EXPECT_EQ(graph.status().code(), KINGLET_INVALID_CHECKPOINT) << length;
  }
}

TEST_P(Protocols, SurvivesEveryChangedByte) {
  const std::string bytes = Fixture("objects_protocol" + std::to_string(GetParam()) + ".pkl");
  for (size_t at = 0; at < bytes.size(); at += kChangeStride) {
    for (const int change : {0x01, 0x20, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ change);
      const Result<PickleGraph> graph = ReadPickle(Bytes(changed), 0);
      if (graph.ok()) {
        EXPECT_LE(graph->bytes_read, changed.size());
        EXPECT_FALSE(graph->root->Describe().empty());
      } else {
        EXPECT_NE(graph.status().message().find("expected"), std::string::npos);
      }
    }
  }
}

// The object pickle of a module that torch wrote (README.md next to it): ('module', ..) ids, a
// getattr on an object that has no state yet, and tensors.
TEST(Pickle, ReadsAWholeModule) {
  const std::string bytes = Fixture("awd_lstm.pkl");
  const Result<PickleGraph> graph = ReadPickle(Bytes(bytes), 0);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const std::vector<PickleNode*> saved = Items(graph->root);
  ASSERT_EQ(saved.size(), 3U);  // model, criterion, optimizer
  const auto model = ValueOf<PickleObject>(saved[0]);
  EXPECT_EQ(model.class_name, "model.RNNModel");
  const PickleNode* modules = model.state->Find("_modules");
  ASSERT_NE(modules, nullptr);
  std::vector<std::string> names;
  for (const auto& [name, module] : ValueOf<PickleDict>(modules).items) {
    names.push_back(ValueOf<std::string>(name));
    EXPECT_NE(module->As<PickleObject>(), nullptr);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"lockdrop", "idrop", "hdrop", "drop", "encoder",
                                             "rnns", "decoder"}));
  const auto embedding = ValueOf<PickleObject>(modules->Find("encoder"));
  const auto weight = ValueOf<PickleTensor>(embedding.state->Find("_parameters")->Find("weight"));
  ASSERT_EQ(weight.shape.size(), 2U);
  EXPECT_EQ(weight.shape[0],
            static_cast<uint64_t>(ValueOf<int64_t>(embedding.state->Find("num_embeddings"))));
  EXPECT_EQ(weight.shape[1],
            static_cast<uint64_t>(ValueOf<int64_t>(embedding.state->Find("embedding_dim"))));
  // The LSTM's flatten_parameters is a method of the WeightDrop around it.
  const auto rnns = ValueOf<PickleObject>(modules->Find("rnns"));
  const PickleNode* first = rnns.state->Find("_modules")->Find("0");
  const auto lstm =
      ValueOf<PickleObject>(ValueOf<PickleObject>(first).state->Find("_modules")->Find("module"));
  const auto method = ValueOf<PickleObject>(lstm.state->Find("flatten_parameters"));
  EXPECT_EQ(method.class_name, "__builtin__.getattr");
  EXPECT_EQ(Items(method.arguments).at(0), first);
}

TEST(Pickle, ReadsAFileOnlyToTheEndOfThePickle) {
  const std::string bytes = Fixture("rnn_model.pkl") + std::string(1 << 20, '?');
  uint64_t furthest = 0;
  const StoredPickle source = {bytes.size(), [&](uint64_t offset, std::span<std::byte> out) {
                                 furthest = std::max<uint64_t>(furthest, offset + out.size());
                                 std::memcpy(out.data(), bytes.data() + offset, out.size());
                                 return Status();
                               }};
  const Result<PickleGraph> graph = ReadPickle(source, 0);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->bytes_read, Fixture("rnn_model.pkl").size());
  EXPECT_EQ(ValueOf<PickleObject>(graph->root).class_name, "model.RNNModel");
  EXPECT_LT(furthest, 1U << 18);
}

TEST(Pickle, NamesTheOffsetAndTheOperation) {
  EXPECT_EQ(Refusal(""),
            "pickle: byte 1000: expected 1 more bytes, found the end at byte 1000 "
            "(the file is truncated or damaged: copy or download it again)");
  EXPECT_EQ(Refusal("\x80\x02}\xfe."),
            "pickle: byte 1003, opcode 0xfe: expected an opcode of pickle protocols 0 to 5, "
            "found another byte");
  EXPECT_EQ(Refusal("\x80\x06N."),
            "pickle: byte 1000, opcode 0x80: expected protocol 0 to 5, found 6");
  EXPECT_EQ(Refusal("."),
            "pickle: byte 1000, opcode 0x2e '.': expected a value on the stack, found none");
  EXPECT_EQ(Refusal("h\x05."),
            "pickle: byte 1000, opcode 0x68 'h': expected an entry of the memo, found no entry 5");
  EXPECT_EQ(Refusal("NNR."),
            "pickle: byte 1002, opcode 0x52 'R': expected a class or function to call, found None");
  EXPECT_EQ(Refusal("cevil\nclass\nN]s."),
            "pickle: byte 1014, opcode 0x73 's': expected a dict to set an item of, found class or "
            "function 'evil.class'");
}

TEST(Pickle, RefusesWhatIsNoPickle) {
  // Stack and marks.
  for (const std::string_view bad :
       {"0"sv,       "1"sv,      "2"sv,    "a"sv,     "s"sv,     "e"sv,      "u"sv,
        "t"sv,       "l"sv,      "d"sv,    "o"sv,     "R"sv,     "b"sv,      "Q"sv,
        "\x81"sv,    "\x85"sv,   "\x86"sv, "\x87"sv,  "\x90"sv,  "\x91"sv,   "\x92"sv,
        "\x93"sv,    "\x94"sv,   "(."sv,   "N(."sv,   "(o."sv,   "(NNNd."sv, "}(Nu."sv,
        "N(\x85."sv, "}(NNs."sv, "NNa."sv, "NNNs."sv, "N(Ne."sv, "NN\x93."sv}) {
    EXPECT_EQ(Refusal(bad).substr(0, 8), "pickle: ") << bad;
  }
  // The memo.
  for (const std::string_view bad :
       {"Np-1\n."sv, "Npx\n."sv, "g0\n."sv, "h"sv, "j\0\0\0"sv, "j\xff\xff\xff\xff."sv, "q\0."sv}) {
    EXPECT_EQ(Refusal(bad).substr(0, 8), "pickle: ") << bad;
  }
  // Classes by number, and buffers outside the file.
  for (const std::string_view bad :
       {"\x82\x01."sv, "\x83\x01\0."sv, "\x84\x01\0\0\0."sv, "\x97."sv, "N\x98."sv}) {
    EXPECT_EQ(Refusal(bad).substr(0, 8), "pickle: ") << bad;
  }
  // A frame longer than the file.
  EXPECT_EQ(Refusal("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xffN."sv),
            "pickle: byte 1002, opcode 0x95: expected a frame of at most the 2 bytes that remain, "
            "found 18446744073709551615");
}

TEST(Pickle, TakesLargeMemoNumbersWithoutLargeMemory) {
  const Result<PickleGraph> graph = ReadPickle(Bytes("Nr\xff\xff\xff\xff"
                                                     "0j\xff\xff\xff\xff."sv),
                                               0);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->root->Describe(), "None");
  EXPECT_TRUE(ReadPickle(Bytes("Np9223372036854775807\n."sv), 0).ok());
}

// Lists that nest a million levels deep: reading and freeing must not recurse.
TEST(Pickle, SurvivesDeepNesting) {
  constexpr size_t kDepth = 1000000;
  const std::string pickles[] = {
      Repeated("(", kDepth) + Repeated("l", kDepth) + ".",
      Repeated("]", kDepth) + Repeated("a", kDepth - 1) + ".",
      ")" + Repeated("\x85", kDepth) + ".",
      Repeated("}N", kDepth) + "N" + Repeated("s", kDepth) + ".",
      "ca\nb\n" + Repeated(")R", kDepth) + ".",
      Repeated("ca\nb\n)\x81", kDepth / 10) + Repeated("b", kDepth / 10 - 1) + ".",
  };
  for (const std::string& pickle : pickles) {
    const Result<PickleGraph> graph = ReadPickle(Bytes(pickle), 0);
    EXPECT_TRUE(graph.ok()) << graph.status().message();
  }
  EXPECT_FALSE(ReadPickle(Bytes(Repeated("(", kDepth)), 0).ok());
  EXPECT_FALSE(ReadPickle(Bytes(Repeated("]", kDepth)), 0).ok());
}

// A list of two references to a list of two references and so on: 100,000 nodes, but 2^100000
// leaves as a tree.
TEST(Pickle, SharesWhatIsShared) {
  const std::string laughs = "]" + Repeated("2\x86", 100000) + ".";
  const Result<PickleGraph> graph = ReadPickle(Bytes(laughs), 0);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_LT(graph->nodes.size(), 100010U);
  const std::vector<PickleNode*> pair = Items(graph->root);
  EXPECT_EQ(pair.at(0), pair.at(1));
}

// Copies of copies: each call takes a few bytes and copies the result of the call before.
TEST(Pickle, RefusesCopiesThatGrowWithoutBound) {
  // x = list(x); x.extend([x] * 16) many times is linear, but a million copies of one long list,
  // and of one long class name, are not.
  const std::string list = "](" + Repeated("N", 100000) + "eq\x01" + "0cbuiltins\nlist\nq\x02" +
                           "0(" + Repeated("h\x02h\x01\x85R", 100000) + "t.";
  const std::string name =
      "c" + std::string(100000, 'm') + "\nname\nq\x01" + "0(" + Repeated("h\x01)R", 100000) + "t.";
  const std::string dict = "}(" + Repeated("N", 100000) + "uq\x01" +
                           "0ccollections\nOrderedDict\n" + "q\x02" + "0(" +
                           Repeated("h\x02h\x01\x85R", 100000) + "t.";
  const std::string key = "(X\x07\0\0\0storagectorch\nFloatStorage\nX\xa0\x86\x01\0"s +
                          std::string(100000, 'k') + "NK\1tq\1"s + "0(" + Repeated("h\1Q", 100000) +
                          "t.";
  for (const std::string& pickle : {list, name, dict, key}) {
    const std::string message = Refusal(pickle);
    EXPECT_NE(message.find("bytes in memory"), std::string::npos) << message;
  }
}

TEST(Pickle, RefusesLengthsThatAreNotThere) {
  for (const std::string_view bad :
       {"X\xff\xff\xff\x7f"sv, "X\0\0\0\x80"sv, "\x8d\0\0\0\0\0\0\0\x80"sv,
        "\x8e\xff\xff\xff\xff\xff\xff\xff\x7f"sv, "\x8b\xff\xff\xff\x7f"sv, "T\xff\xff\xff\xff"sv,
        "B\0\0\0\x80"sv, "\x96\0\0\0\0\x01\0\0\0"sv}) {
    EXPECT_NE(Refusal(bad).find("expected at most the 0 bytes that remain"), std::string::npos)
        << Refusal(bad);
  }
}

}  // namespace
}  // namespace kinglet::pickle_test
