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

TEST(JsonEvents, EndWhereTheReaderWants) { EXPECT_EQ(EventsOf(R"(["stop", 1])"), "[ 'stop'"); }

TEST(JsonEvents, NestWithoutTakingStack) {
  const std::string log = EventsOf(std::string(1'000'000, '['));
  EXPECT_EQ(log.substr(log.size() - 17), "broken at 1000001");
}

}  // namespace
}  // namespace kinglet
