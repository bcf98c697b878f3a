#include "converters/checkpoints/json_events.h"

#include <gtest/gtest.h>

namespace kinglet {
namespace {

// Records the events; ends the reading at a text "stop".
class JsonEventLog final : public JsonEvents {
 public:
  bool BeginObject() override { return Log("{"); }
  bool Name(std::string& name) override { return Log(name + ":"); }
  bool EndObject() override { return Log("}"); }
  bool BeginList() override { return Log("["); }
  bool EndList() override { return Log("]"); }
  bool Text(std::string& text) override { return Log("'" + text + "'") && text != "stop"; }
  bool Number(std::optional<uint64_t> number) override {
    return Log(number ? std::to_string(*number) : "other number");
  }
  bool Boolean() override { return Log("bool"); }
  bool Null() override { return Log("null"); }
  void Broken(size_t byte) override { Log("broken at " + std::to_string(byte)); }

  std::string log;

 private:
  bool Log(const std::string& event) {
    log += (log.empty() ? "" : " ") + event;
    return true;
  }
};

std::string EventsOf(std::string_view text) {
  JsonEventLog events;
  ReadJson(text, events);
  return events.log;
}

TEST(JsonEvents, FollowTheText) {
  EXPECT_EQ(EventsOf(R"( {"a": [1, "x\n", true, null], "b": {}} )"),
            "{ a: [ 1 'x\n' bool null ] b: { } }");
  EXPECT_EQ(EventsOf(R"("café")"), "'café'");
  EXPECT_EQ(EventsOf("false"), "bool");
}

TEST(JsonEvents, GiveIntegersOf64BitsAlone) {
  EXPECT_EQ(EventsOf("18446744073709551615"), "18446744073709551615");
  for (const char* text : {"18446744073709551616", "-1", "1.0", "1e3"}) {
    EXPECT_EQ(EventsOf(text), "other number") << text;
  }
}

TEST(JsonEvents, SayWhereTheTextIsBroken) {
  EXPECT_EQ(EventsOf(""), "broken at 1");
  EXPECT_EQ(EventsOf("{} x"), "{ } broken at 4");
  EXPECT_EQ(EventsOf("[1,]"), "[ 1 broken at 4");
  EXPECT_EQ(EventsOf("{\"a\xff\":1}"), "{ broken at 4");
  EXPECT_EQ(EventsOf("1e999"), "broken at 5");
}

TEST(JsonEvents, WhyALineIsNotJson) {
  for (const auto& [line, why] : std::initializer_list<std::pair<std::string, const char*>>{
           {R"({"a": [1, -2.5, "café", null]})", ""},
           {"", "an empty line"},
           {" \r", "an empty line"},
           {R"({"score": NaN})", "column 11 (byte 11): NaN, which JSON does not have"},
           {R"({"score": -Infinity})", "column 12 (byte 12): -Infinity, which JSON does not have"},
           {R"({"café": Infinity})", "column 10 (byte 11): Infinity, which JSON does not have"},
           {R"({"a": "\ud800"})", "column 14 (byte 14): half of a surrogate pair"},
           {"{\"a\": \"caf\xe9\"}", "column 12 (byte 12): a byte that is not UTF-8"},
           {"{\"a\": \"x\ty\"}",
            "column 9 (byte 9): a control character in a string (write it as \\u00XX)"},
           {R"({"a": 1)", "column 8 (byte 8): the end of the line"},
           {R"({'a': 1})", "column 2 (byte 2): a single quote (write a double one)"},
           {R"({"a": +1})", "column 7 (byte 7): a character that JSON does not allow there"}}) {
    EXPECT_EQ(WhyNotJson(line), why) << line;
  }
}

TEST(JsonEvents, EndWhereTheReaderWants) { EXPECT_EQ(EventsOf(R"(["stop", 1])"), "[ 'stop'"); }

TEST(JsonEvents, NestWithoutTakingStack) {
  const std::string log = EventsOf(std::string(1'000'000, '['));
  EXPECT_EQ(log.substr(log.size() - 17), "broken at 1000001");
}

}  // namespace
}  // namespace kinglet
