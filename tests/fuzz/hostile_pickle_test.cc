// Pickles that try to run code, or to exhaust the reader, in the forms that reports on malicious
// checkpoints describe: every opcode that calls, and names of functions that run commands. No
// pickle is executed: its command creates no file, and each pickle is refused in one line.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/checkpoints/pickle.h"
#include "converters/texts/pickled_vocabulary.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/stored_zip.h"
#include "tests/fuzz/targets.h"

namespace kinglet::fuzz {
namespace {

using namespace std::string_literals;  // NOLINT: pickles contain NUL

struct HostilePickle {
  std::string name, bytes;
};

std::span<const std::byte> PickleBytesOf(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string ShortText(const std::string& text) {
  return "\x8c" + std::string(1, static_cast<char>(text.size())) + text;
}

// A function that runs its argument, and one argument of its kind.
struct Dangerous {
  const char *module, *name;
};

constexpr Dangerous kDangerous[] = {
    {"os", "system"},
    {"posix", "system"},
    {"nt", "system"},
    {"subprocess", "Popen"},
    {"subprocess", "check_output"},
    {"builtins", "eval"},
    {"builtins", "exec"},
    {"__builtin__", "eval"},
    {"runpy", "_run_code"},
    {"webbrowser", "open"},
    {"shutil", "rmtree"},
    {"torch", "load"},
    {"torch.hub", "load"},
    {"numpy.testing._private.utils", "runstring"},
    {"builtins", "__import__"},
    {"builtins", "getattr"},
    {"pip", "main"},
    {"torch", "serialization.os.system"},
    {"collections", "OrderedDict.__init__.__globals__.__getitem__"},
    {"torch._utils", "_rebuild_tensor_v2.__globals__"},
};

// Every way in which a pickle calls a global with the argument `command`.
std::vector<HostilePickle> CallsOf(const Dangerous& function, const std::string& command) {
  const std::string module = function.module, name = function.name;
  const std::string line = module + "\n" + name + "\n";
  const std::string argument = ShortText(command);
  const std::string stacked = ShortText(module) + ShortText(name) + "\x93";
  const std::string what = module + "." + name;
  return {
      {what + " GLOBAL REDUCE",
       "\x80\x02"
       "c" +
           line + argument + "\x85R."},
      {what + " STACK_GLOBAL REDUCE", "\x80\x04" + stacked + argument + "\x85R."},
      {what + " INST", "(" + argument + "i" + line + "."},
      {what + " OBJ", "(c" + line + argument + "o."},
      {what + " NEWOBJ",
       "\x80\x02"
       "c" +
           line + argument + "\x85\x81."},
      {what + " NEWOBJ_EX", "\x80\x04" + stacked + argument + "\x85}\x92."},
      {what + " BUILD",
       "\x80\x02"
       "c" +
           line + argument + "b."},
  };
}

std::vector<HostilePickle> HostileForms() {
  const std::string deep(100000, '(');
  std::string tuples = "N", lists = "]", doubled = "]q"s + '\0';
  for (int i = 0; i < 100000; ++i) tuples += '\x85';
  for (int i = 0; i < 50000; ++i) lists += "]";
  lists += std::string(50000, 'a');
  // Each list contains the list before twice: 2^40 items if they were copied.
  for (int i = 1; i <= 40; ++i) {
    const char before = static_cast<char>(i - 1), now = static_cast<char>(i);
    doubled += "](h"s + before + "h" + before + "eq" + now;
  }
  return {
      {"nothing", ""},
      {"only a stop", "."},
      {"no stop", "N"},
      {"a protocol of the future", "\x80\x7fN."},
      {"marks without end", deep + "."},
      {"tuples in tuples", tuples + "."},
      {"lists in lists", lists + "."},
      {"a list that holds itself", "]q"s + '\0' + "h" + '\0' + "a."},
      {"shared lists", doubled + "."},
      {"a text of 2^31 - 1 bytes",
       "X\xff\xff\xff\x7f"
       "a."},
      {"bytes of 2^32 - 1",
       "B\xff\xff\xff\xff"
       "a."},
      {"a text of 2^63 - 1 bytes",
       "\x8d\xff\xff\xff\xff\xff\xff\xff\x7f"
       "a."},
      {"bytes of 2^64 - 1",
       "\x8e\xff\xff\xff\xff\xff\xff\xff\xff"
       "a."},
      {"a bytearray of 2^63", "\x96\0\0\0\0\0\0\0\x80"s + "a."},
      {"a frame of 2^63", "\x80\x04\x95\0\0\0\0\0\0\0\x80N."s},
      {"an integer of 2^31 - 1 bytes", "\x8b\xff\xff\xff\x7f\1."},
      {"an integer of -1 bytes", "\x8b\xff\xff\xff\xff\1."},
      {"a text of -1 bytes",
       "T\xff\xff\xff\xff"
       "a."},
      {"memo number 2^32 - 1", "Nr\xff\xff\xff\xffj\xff\xff\xff\xff."},
      {"a memo that is not there", "j\xff\xff\xff\x7f."},
      {"a memo number of 40 digits", "Np" + std::string(40, '9') + "\n."},
      {"a negative memo number", "Np-1\ng-1\n."},
      {"an integer of 100,000 digits", "L" + std::string(100000, '9') + "L\n."},
      {"a line without end", "S'" + std::string(100000, 'x')},
      {"a float that is none", "Fnan(0x1)x\n."},
      {"a mark that is not there", "t."},
      {"items without a list", "(NNe."},
      {"an odd number of dict items", "}(Nu."},
      {"an empty stack", "\x85."},
      {"a dict with a dict as key", "}(}Nu."},
      {"a pop of nothing", "0."},
      {"a call of a number", "K\1)R."},
      {"a call with a number", "cos\nsystem\nK\1R."},
      {"a global without a name", "cos\n"},
      {"a global of numbers", "\x80\x04K\1K\2\x93."},
      {"an extension", "\x82\1)R."},
      {"an extension of 2^31", "\x84\0\0\0\x80)R."s},
      {"a persistent id that is code", "cos\nsystem\n\x8c\x04true\x85RQ."},
      {"a persistent id as text", "Pstorage\n."},
      {"persistent ids in persistent ids", "((\x8c\x07storageQtQ."},
      {"a memo that replaces a function by another", "cos\nsystem\nq\1cos\ngetcwd\nq\1h\1)R."},
      {"a class that is made of a call", "cbuiltins\ntype\n(\x8c\1x)}tR)\x81."},
      {"an out-of-band buffer", "\x80\x05\x97\x98."},
      {"an opcode that is none", "\xff."},
      {"a surrogate", "V\\ud800\n."},
  };
}

// The parts of a checkpoint that are pickles.
void ExpectHarmless(const HostilePickle& pickle) {
  SCOPED_TRACE(pickle.name);
  const auto bytes = PickleBytesOf(pickle.bytes);
  ExpectOneLine(ReadPickle(bytes, 0).status());
  const std::string legacy_start =
      "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
      "\x80\x02M\xe9\x03.\x80\x02}."s;
  const std::string legacy = legacy_start + pickle.bytes;
  const std::vector<std::byte> zip = TorchZipOf(bytes);
  for (const auto file_bytes : {bytes, PickleBytesOf(legacy), std::span<const std::byte>(zip)}) {
    const MemoryFile file(file_bytes);
    const auto source = OpenCheckpointFile(file.path());
    EXPECT_FALSE(source.ok());
    EXPECT_NO_THROW(ExpectOneLine(source.status()));
    const auto words = ReadPickledVocabulary(file.path());
    EXPECT_FALSE(words.ok());
    EXPECT_NO_THROW(ExpectOneLine(words.status()));
  }
}

TEST(HostilePickle, NoNameOfAFunctionIsCalled) {
  const std::string marker = testing::TempDir() + "kinglet_hostile_pickle_ran";
  std::filesystem::remove(marker);
  size_t cases = 0;
  for (const Dangerous& function : kDangerous) {
    for (const HostilePickle& pickle : CallsOf(function, "touch " + marker)) {
      ExpectHarmless(pickle);
      ++cases;
    }
  }
  EXPECT_EQ(cases, 140U);
  EXPECT_FALSE(std::filesystem::exists(marker));
}

// Readers that use another entry than a scanner run code that the scanner has not checked.
TEST(HostilePickle, AnArchiveHasOnePickle) {
  const std::string good = "\x80\x02}.", bad =
                                             "\x80\x02"
                                             "cos\nsystem\n\x8c\4true\x85R.";
  for (const auto& [first, second] : {std::pair(good, bad), std::pair(bad, good)}) {
    const auto zip = StoredZip(
        {{"archive/data.pkl", PickleBytesOf(first)}, {"archive/data.pkl", PickleBytesOf(second)}});
    const MemoryFile file(zip);
    const auto source = OpenCheckpointFile(file.path());
    EXPECT_FALSE(source.ok());
    EXPECT_NO_THROW(ExpectOneLine(source.status()));
  }
}

TEST(HostilePickle, NoFormExhaustsTheReader) {
  const auto forms = HostileForms();
  EXPECT_EQ(forms.size(), 45U);
  for (const HostilePickle& pickle : forms) ExpectHarmless(pickle);
}

TEST(HostilePickle, EveryOpcodeAloneAndTwice) {
  for (int first = 0; first < 256; ++first) {
    for (const int second : {first, int{'.'}, int{'('}, int{'R'}}) {
      const std::string bytes = {'N', static_cast<char>(first), static_cast<char>(second), '.'};
      EXPECT_NO_THROW(ExpectOneLine(ReadPickle(PickleBytesOf(bytes), 0).status())) << first;
    }
  }
}

TEST(HostilePickle, EveryTruncationOfACallIsHarmless) {
  for (const HostilePickle& pickle : CallsOf(kDangerous[0], "true")) {
    for (size_t size = 0; size < pickle.bytes.size(); ++size) {
      const auto graph = ReadPickle(PickleBytesOf(pickle.bytes).first(size), 0);
      EXPECT_FALSE(graph.ok()) << pickle.name << " truncated to " << size;
      EXPECT_NO_THROW(ExpectOneLine(graph.status()));
    }
  }
}

}  // namespace
}  // namespace kinglet::fuzz
