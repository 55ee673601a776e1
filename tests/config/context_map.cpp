#include "croton/context_map.h"

#include <catch2/catch.hpp>
#include <string>

#include "config/device_guess.h"
#include "tests/config/error_of.h"

using namespace croton;
using Catch::Contains;

namespace {

std::string error(const std::string& text) {
  return error_of([&] { parse_context_map(text, "CROTON_FLAGS"); });
}

/// The message for `text` up to the suggestion, without the part that repeats `text`.
std::string fault(const std::string& text) {
  std::string message = error(text);
  std::string head = "[contexts] got '" + text + "' from CROTON_FLAGS: ";
  REQUIRE(message.starts_with(head));
  return message.substr(head.size(), message.rfind("; write contexts=") - head.size());
}

/// The map that the message for `text` tells the user to write.
std::string suggestion(const std::string& text) {
  std::string message = error(text);
  std::string mark = "; write contexts=";
  std::size_t at = message.rfind(mark);
  return at == message.npos ? "none in: " + message : message.substr(at + mark.size());
}

}  // namespace

TEST_CASE("a context map keeps order and several names of one device", "[config]") {
  ContextMap map = parse_context_map("dev0->cuda0;dev1->cuda1;host->cpu;other->cuda");
  REQUIRE(map.size() == 4);
  CHECK(map[0] == ContextBinding{"dev0", {DeviceKind::cuda, 0}});
  CHECK(map[1] == ContextBinding{"dev1", {DeviceKind::cuda, 1}});
  CHECK(map[2] == ContextBinding{"host", {DeviceKind::cpu, 0}});
  CHECK(map[3] == ContextBinding{"other", {DeviceKind::cuda, 0}});
  CHECK(to_string(map) == "dev0->cuda0;dev1->cuda1;host->cpu0;other->cuda0");
  CHECK(parse_context_map(to_string(map)) == map);
}

TEST_CASE("blanks and a last semicolon in a context map are dropped", "[config]") {
  CHECK(parse_context_map("").empty());
  CHECK(parse_context_map("  ").empty());
  ContextMap map = parse_context_map("dev0->cpu;dev1->null");
  CHECK(parse_context_map("dev0->cpu;dev1->null;") == map);
  CHECK(parse_context_map(" dev0 -> cpu ; dev1 -> null ; ") == map);
  CHECK(parse_context_map("a->rank1/cuda2")[0].device == DeviceName{DeviceKind::cuda, 2, 1});
}

TEST_CASE("each malformed context map is told where it breaks", "[config]") {
  CHECK(fault("dev0=>cuda0") == "at position 5 read '=>', expected '->'");
  CHECK(fault("dev0:cuda0") == "at position 5 read ':', expected '->'");
  CHECK(fault("dev0=cuda0") == "at position 5 read '=', expected '->'");
  CHECK(fault("dev0\u2192cuda0") == "at position 5 read '\u2192', expected '->'");
  CHECK(fault("d\u00e9v\u2192cuda0") == "at position 4 read '\u2192', expected '->'");
  CHECK(fault("dev0") == "at position 1 read 'dev0', expected '->' and a device after the name");
  CHECK(fault("cuda0") == "at position 1 read 'cuda0', expected a name and '->' before the device");
  CHECK_THAT(fault("dev0-"), Contains("at position 5 read '-'") && Contains("shell"));
  CHECK(fault("a->cpu;dev0->cuda0->cuda1") ==
        "at position 19 read '->', expected ';' between two pairs: each holds one arrow");
  CHECK(fault("a->cpu;;b->cpu") == "at position 8 read ';', expected name->device before it");
  CHECK(fault(";a->cpu") == "at position 1 read ';', expected name->device before it");
  CHECK(fault(";") == "at position 1 read ';', expected name->device before it");
  CHECK(fault("a->cpu; ;") == "at position 9 read ';', expected name->device before it");
  CHECK(fault("->cuda0") == "at position 1 read '->', expected a name before the arrow");
  CHECK(fault("dev0->") == "at position 7 expected a device after the arrow");
  CHECK(fault("dev0-> ;b->cpu") == "at position 7 expected a device after the arrow");
  CHECK(fault("cpu->cuda0") ==
        "at position 1 read 'cpu', expected a name of your own: cpu, cuda* and null are kept for "
        "devices");
  CHECK_THAT(fault(" cuda1->cuda0"), Contains("at position 2 read 'cuda1', expected a name of"));
  CHECK_THAT(fault("null->cpu"), Contains("expected a name of your own"));
  CHECK(fault("dev0->cuda0;dev0->cuda1") ==
        "at position 13 read 'dev0', expected another name: this one is already bound to cuda0");
  CHECK_THAT(fault("my dev->cpu"), Contains("at position 1 read 'my dev', expected a name of let"));
  CHECK_THAT(fault("0->cpu"), Contains("begins with a letter"));
  CHECK(fault("dev0->gpu0") ==
        "at position 7 read 'gpu0', expected a device: cpu, cuda, cudaN or null");
  CHECK(fault("dev0->cuda-1") == "at position 11 read '-1', expected a device index of at least 0");
  CHECK(fault("dev0-> cudaX") ==
        "at position 12 read 'X', expected nothing but the digits of a device index");
  CHECK(fault("dev{0,1}->cuda{0,1}") ==
        "at position 4 read '{', expected each name->device pair written out");
  CHECK(fault("dev0->cuda0,dev1->cuda1") ==
        "at position 12 read ',', expected name->device pairs separated by ';'");
}

TEST_CASE("each malformed context map is told what to write", "[config]") {
  CHECK(suggestion("dev0=>cuda0") == "dev0->cuda0");
  CHECK(suggestion("dev0:cuda0;dev1:cuda1") == "dev0->cuda0;dev1->cuda1");
  CHECK(suggestion("dev0=cpu,dev1=gpu1") == "dev0->cpu;dev1->cuda1");
  CHECK(suggestion("dev0\u2192cuda0") == "dev0->cuda0");
  CHECK(suggestion("dev0:cuda:1") == "dev0->cuda1");
  CHECK(suggestion("dev0 cuda1") == "dev0->cuda1");
  CHECK(suggestion("dev0-cuda1") == "dev0->cuda1");
  CHECK(suggestion("dev1") == "dev1->cuda1");
  CHECK(suggestion("dev0-") == "dev0->cuda0");
  CHECK(suggestion("cuda1") == "dev0->cuda1");
  CHECK(suggestion("cuda0,cuda1") == "dev0->cuda0;dev1->cuda1");
  CHECK(suggestion("cuda0:cuda1") == "dev0->cuda0;dev1->cuda1");
  CHECK(suggestion("cuda0 cuda1") == "dev0->cuda0;dev1->cuda1");
  CHECK(suggestion("cuda{0,1,2}") == "dev0->cuda0;dev1->cuda1;dev2->cuda2");
  CHECK(suggestion("cuda{0..2}") == "dev0->cuda0;dev1->cuda1;dev2->cuda2");
  CHECK(suggestion("cuda[0-1]") == "dev0->cuda0;dev1->cuda1");
  CHECK(suggestion("dev{0,1}->cuda{0,1}") == "dev0->cuda0;dev1->cuda1");
  CHECK(suggestion("dev{0,1}->cuda0") == "dev0->cuda0;dev1->cuda0");
  CHECK(suggestion("{a:cuda0,b:cpu}") == "a->cuda0;b->cpu");
  CHECK(suggestion("dev0->cuda0,dev1->cuda1") == "dev0->cuda0;dev1->cuda1");
  CHECK(suggestion("dev0->cuda0 dev1->cuda1") == "dev0->cuda0;dev1->cuda1");
  CHECK(suggestion("dev0->cuda0->cuda1") == "dev0->cuda0");
  CHECK(suggestion("a->cpu;;b->cpu") == "a->cpu;b->cpu");
  CHECK(suggestion("->cuda1") == "dev0->cuda1");
  CHECK(suggestion("dev0->") == "dev0->cuda0");
  CHECK(suggestion("cpu->cuda0") == "dev0->cuda0");
  CHECK(suggestion("cuda1->left") == "left->cuda1");
  CHECK(suggestion("dev0->cuda0;dev0->cuda1") == "dev0->cuda0;dev1->cuda1");
  CHECK(suggestion("dev0->cuda0;dev0->cuda1;dev1->cpu") == "dev0->cuda0;dev2->cuda1;dev1->cpu");
  CHECK(suggestion("my dev->cpu") == "my_dev->cpu");
  CHECK(suggestion("0->cuda0") == "dev0->cuda0");
  CHECK(suggestion("dev0->gpu0") == "dev0->cuda0");
  CHECK(suggestion(";") == "dev0->cuda0;dev1->cuda1");
}

TEST_CASE("whatever is written, the line that is suggested reads without fault", "[config]") {
  // Texts over an alphabet of the tokens that matter, numbered in mixed radix.
  const char* tokens[] = {"dev0", "cuda0", "->", "=",   ";", ",", "{",
                          "}",    " ",     "1",  "gpu", "-", ":"};
  constexpr int kTokens = 13, kLength = 4;
  int texts = 1;
  for (int i = 0; i < kLength; ++i) texts *= kTokens;
  int refused = 0;
  for (int n = 0; n < texts; ++n) {
    std::string text;
    for (int i = 0, rest = n; i < kLength; ++i, rest /= kTokens) text += tokens[rest % kTokens];
    std::string message = error(text);
    if (message.empty()) continue;
    ++refused;
    std::size_t at = message.rfind("; write contexts=");
    if (at == message.npos) FAIL("no line in: " << message);
    ContextMap map;
    std::string line = message.substr(at + 17);
    if (read_context_map(line, map) || map.empty()) FAIL("bad line in: " << message);
  }
  CHECK(refused > texts / 2);
}
