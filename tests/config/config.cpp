#include "croton/config.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <type_traits>

#include "config/environment.h"
#include "tests/config/error_of.h"
#include "tests/config/scoped_variable.h"
#include "tests/temporary_folder.h"

using namespace croton;
using Catch::Contains;

namespace {

std::string error(const std::string& flags) {
  return error_of([&] { Config::from_text(flags); });
}

}  // namespace

TEST_CASE("every flag is whole: its default reads, prints and reads back", "[config]") {
  Config config;
  std::set<std::string_view> names;
  for (const FlagInfo& flag : all_flags()) {
    INFO(flag.name);
    CHECK(names.insert(flag.name).second);
    CHECK_FALSE(flag.doc.empty());
    CHECK_FALSE(flag.allowed.empty());
    CHECK(config.source(flag.name) == "default");
    Config again = config.with(flag.name, config.value(flag.name));
    CHECK(again.value(flag.name) == config.value(flag.name));
    CHECK(again.changed_from(config).empty());
  }
}

TEST_CASE("the defaults are those that are documented", "[config]") {
  Config config;
  CHECK(config.contexts().empty());
  CHECK(config.device() == DeviceName{DeviceKind::cpu, 0});
  CHECK(config.on_missing_device() == OnMissingDevice::raise);
  CHECK(config.implicit_transfer() == ImplicitTransfer::allow);
  CHECK(config.floatX() == FloatX::float32);
  CHECK(config.cast_policy() == CastPolicy::custom);
  CHECK(config.mode() == Mode::fast_run);
  CHECK(config.on_unused_input() == OnUnused::raise);
  CHECK(config.fuse());
  CHECK_FALSE(config.deterministic());
  CHECK_FALSE(config.check_bounds());
  CHECK(config.threads() == 0);
  CHECK(config.plan_cache_size() == 64);
  CHECK(config.cache());
  CHECK(config.log_level() == LogLevel::warn);
}

TEST_CASE("each allowed value of a choice is its enumerator", "[config]") {
  CHECK(Config().with("mode", "FAST_COMPILE").mode() == Mode::fast_compile);
  CHECK(Config().with("mode", "DEBUG").mode() == Mode::debug);
  CHECK(Config().with("floatX", "bfloat16").floatX() == FloatX::bfloat16);
  CHECK(Config().with("on_unused_input", "ignore").on_unused_input() == OnUnused::ignore);
  CHECK(Config().with("log_level", "off").log_level() == LogLevel::off);
  CHECK(Config().with("cast_policy", "numpy").cast_policy() == CastPolicy::numpy);
  CHECK(Config().with("implicit_transfer", "raise").implicit_transfer() == ImplicitTransfer::raise);
  CHECK(Config().with("on_missing_device", "cpu").on_missing_device() == OnMissingDevice::cpu);
}

TEST_CASE("with gives a changed copy and leaves the original", "[config]") {
  Config base;
  Config changed = base.with("fuse", false).with("threads", 3).with("floatX", "float64");
  CHECK(base.fuse());
  CHECK_FALSE(changed.fuse());
  CHECK(changed.threads() == 3);
  CHECK(changed.threads() == base.with("threads", std::string("3")).threads());
  CHECK(changed.changed_from(base) == std::vector<std::string>{"floatX", "fuse", "threads"});
  CHECK_THAT(changed.source("fuse"), Contains("code (config.cpp:"));
  CHECK(changed.source("mode") == "default");
  Config moved = std::move(changed);
  CHECK(changed.threads() == 3);
  CHECK(moved.threads() == 3);
}

TEST_CASE("values of each type are read, and refused with what is allowed", "[config]") {
  for (const char* yes : {"on", "true", "True", "1"})
    CHECK(Config().with("deterministic", yes).deterministic());
  for (const char* no : {"off", "false", "False", "0"})
    CHECK_FALSE(Config().with("fuse", no).fuse());
  CHECK(error("fuse=yes") ==
        "[fuse] got 'yes' from CROTON_FLAGS: expected on or off (true, false, "
        "1 and 0 mean the same)");
  CHECK(error("threads=four") ==
        "[threads] got 'four' from CROTON_FLAGS: expected a whole number, from 0 to 4096");
  CHECK_THAT(error("threads=-1"), Contains("got '-1'") && Contains("from 0 to 4096"));
  CHECK_THAT(error("threads=2.0"), Contains("whole number"));
  CHECK_THAT(error("threads="), Contains("got ''"));
  CHECK_THAT(error("threads=99999999999999999999"), Contains("from 0 to 4096"));
  CHECK_THAT(error("vector_bits=300"), Contains("one of 0, 128, 256, 512"));
  CHECK_THAT(error("plan_cache_size=0"), Contains("at least 1"));
  CHECK_THAT(error("mode=fast_run"),
             Contains("one of FAST_RUN, FAST_COMPILE, DEBUG; did you mean 'FAST_RUN'?"));
  CHECK_THAT(error("on_missing_device=cuda"), Contains("one of raise, cpu"));
  CHECK_THAT(error_of([] { Config().with("threads", 0.5); }),
             Contains("[threads] got '0.5' from code (config.cpp:"));
}

TEST_CASE("bytes may have a unit", "[config]") {
  auto limit = [](const char* text) { return Config().with("pool_limit_bytes", text); };
  CHECK(limit("4096").pool_limit_bytes() == 4096);
  CHECK(limit("3K").pool_limit_bytes() == 3 * 1024);
  CHECK(limit("2G").pool_limit_bytes() == std::int64_t{2} << 30);
  CHECK(limit("1536M").value("pool_limit_bytes") == "1536M");
  CHECK(limit("2048M").value("pool_limit_bytes") == "2G");
  CHECK(limit("1000").value("pool_limit_bytes") == "1000");
  for (const char* text : {"4g", "-1", "G", "1.5G", "9999999999T", "4GB"}) {
    INFO(text);
    CHECK_THAT(error(std::string("pool_limit_bytes=") + text),
               Contains("whole number of bytes, perhaps with K, M, G or T behind it, at least 0"));
  }
}

TEST_CASE("lists of names are separated by colons", "[config]") {
  Config config = Config::from_text("optimizer_including= fusion : gemm:,optimizer_excluding=");
  CHECK(config.optimizer_including() == std::vector<std::string>{"fusion", "gemm"});
  CHECK(config.optimizer_excluding().empty());
  CHECK(config.value("optimizer_including") == "fusion:gemm");
  CHECK_THAT(error("optimizer_including='a,b'"),
             Contains("read ',' in a name") && Contains("write optimizer_including=a:b"));
}

TEST_CASE("device and contexts are read into their own types", "[config]") {
  Config config = Config::from_text("contexts=dev0->cuda0;dev1->cpu;,device=cuda");
  CHECK(config.contexts() == parse_context_map("dev0->cuda0;dev1->cpu"));
  CHECK(config.value("contexts") == "dev0->cuda0;dev1->cpu0");
  CHECK(config.device() == DeviceName{DeviceKind::cuda, 0});
  CHECK(config.value("device") == "cuda0");
  CHECK_FALSE(Config().with("device", "auto").device().has_value());
  CHECK(Config().with("device", "auto").value("device") == "auto");
  CHECK(Config().with("device", "null").device()->kind == DeviceKind::null);
}

TEST_CASE("unknown names in code are errors that suggest the nearest", "[config]") {
  CHECK_THAT(error_of([] { Config().with("fues", true); }),
             Contains("[fues] from code (config.cpp:") && Contains("did you mean 'fuse'?"));
  CHECK_THAT(error_of([] { Config().value("fues"); }), Contains("did you mean 'fuse'?"));
  CHECK_THAT(error_of([] { Config().source("fues"); }), Contains("did you mean 'fuse'?"));
  CHECK_THAT(error_of([] { flag_scope("fues"); }), Contains("did you mean 'fuse'?"));
}

TEST_CASE("the environment is over rc files, later files are over earlier ones", "[config]") {
  test::TemporaryFolder folder;
  std::string first =
      folder.write("first", "[global]\nthreads = 1\nfloatX = float64\nfuse = off\n");
  std::string second =
      folder.write("second", "[global]\n\nfloatX = float16\nfuse = on\nfuse=off\n");
  Config config = Config::from_text("threads=7", {first, second});
  CHECK(config.threads() == 7);
  CHECK(config.source("threads") == "environment");
  CHECK(config.floatX() == FloatX::float16);
  CHECK(config.source("floatX") == second + ":3");
  CHECK_FALSE(config.fuse());
  CHECK(config.source("fuse") == second + ":5");
  CHECK(config.source("mode") == "default");
  CHECK(config.with("threads", 8).threads() == 8);
}

TEST_CASE("CROTONRC takes the place of ~/.crotonrc", "[config]") {
  test::TemporaryFolder home;
  home.write(".crotonrc", "[global]\nthreads = 5\n");
  home.write("other", "[global]\nfuse = off\n");
  home.write("third", "[global]\nplan_cache_size = 9\n");
  ScopedVariable set_home("HOME", home.path());
  ScopedVariable set_flags("CROTON_FLAGS", std::nullopt);
  {
    ScopedVariable set_rc("CROTONRC", std::nullopt);
    Config config = Config::from_environment();
    CHECK(config.threads() == 5);
    CHECK(config.source("threads") == home.path() + "/.crotonrc:2");
  }
  {
    ScopedVariable set_rc("CROTONRC", "~/other: :" + home.path() + "/third");
    Config config = Config::from_environment();
    CHECK(config.threads() == 0);
    CHECK_FALSE(config.fuse());
    CHECK(config.plan_cache_size() == 9);
  }
  {
    ScopedVariable set_rc("CROTONRC", "");
    CHECK(Config::from_environment().threads() == 0);
  }
  {
    ScopedVariable set_rc("CROTONRC", "~/none");
    CHECK_THAT(error_of([] { Config::from_environment(); }),
               Contains("cannot read '" + home.path() + "/none'"));
  }
}

TEST_CASE("the environment is read when asked for", "[config]") {
  test::TemporaryFolder home;
  ScopedVariable set_home("HOME", home.path());
  ScopedVariable set_rc("CROTONRC", std::nullopt);
  ScopedVariable set_flags("CROTON_FLAGS", "floatX=float64");
  CHECK(Config::from_environment().floatX() == FloatX::float64);
  CHECK(Config().floatX() == FloatX::float32);
  ScopedVariable set_bad("CROTON_FLAGS", "floatX=float65");
  CHECK_THAT(error_of([] { Config::from_environment(); }), Contains("[floatX] got 'float65'"));
}

TEST_CASE("the cache folder follows XDG, and '~' is expanded in paths alone", "[config]") {
  test::TemporaryFolder home;
  ScopedVariable set_home("HOME", home.path());
  {
    ScopedVariable set_xdg("XDG_CACHE_HOME", std::nullopt);
    CHECK(Config().cache_dir() == home.path() + "/.cache/croton");
  }
  {
    ScopedVariable set_xdg("XDG_CACHE_HOME", "/var/tmp/x");
    CHECK(Config().cache_dir() == "/var/tmp/x/croton");
  }
  {
    ScopedVariable set_xdg("XDG_CACHE_HOME", "relative");
    CHECK(Config().cache_dir() == home.path() + "/.cache/croton");
  }
  CHECK(Config::from_text("cache_dir=~/a b").cache_dir() == home.path() + "/a b");
  CHECK(Config::from_text("cache_dir=~").cache_dir() == home.path());
  CHECK(Config().with("cache_dir", "~/c").cache_dir() == home.path() + "/c");
  CHECK(Config::from_text("cache_dir=/a~b").cache_dir() == "/a~b");
  CHECK(Config::from_text("dump=~/x").dump() == "~/x");
  CHECK_THAT(error("cache_dir=~bob/x"),
             Contains("[cache_dir] got '~bob/x' from CROTON_FLAGS: '~'"));
  CHECK_THAT(error("cache_dir="), Contains("expected a path"));
  CHECK_THAT(error_of([] { expand_home("~/x", ""); }), Contains("HOME is not set"));
}

TEST_CASE("only flags that change code are in the code key", "[config]") {
  Config base;
  CHECK(base.code_key() == "check_bounds=off\nvector_bits=0\n");
  CHECK(base.with("fuse", false).with("threads", 3).code_key() == base.code_key());
  CHECK(base.with("check_bounds", "True").code_key() == base.with("check_bounds", true).code_key());
  CHECK(base.with("vector_bits", 256).code_key() != base.code_key());
}

TEST_CASE("a flag in the wrong place is an error that names the right one", "[config]") {
  Config base;
  auto check = [&](const Config& config) {
    return error_of(
        [&] { config.check_scopes(base, {FlagScope::compile}, "a function's options"); });
  };
  CHECK(check(base).empty());
  CHECK(check(base.with("fuse", false)).empty());
  CHECK(check(base.with("threads", 0)).empty());
  CHECK(check(base.with("floatX", "float64")) ==
        "[floatX] cannot be set to 'float64' in a function's options: it is set while expressions "
        "are built, by a ConfigScope");
  CHECK_THAT(check(base.with("device", "cuda")),
             Contains("fixed at first use; set it in CROTON_FLAGS or an rc file"));
  CHECK_THAT(error_of([&] {
               base.with("fuse", false).check_scopes(base, {FlagScope::building}, "a ConfigScope");
             }),
             Contains("it is set per function"));
  CHECK(flag_scope("device") == FlagScope::process);
  CHECK(flag_scope("floatX") == FlagScope::building);
  CHECK(flag_scope("mode") == FlagScope::compile);
}
