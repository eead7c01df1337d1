#include "card/config_override.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::card {
namespace {

TEST(ConfigOverride, ReplacesKeyByKey) {
  const auto with = [](const std::string& config, std::vector<std::string> overrides) {
    const auto text = override_config(config, overrides);
    return text ? *text : text.error().message;
  };
  EXPECT_EQ(with(R"({"a":1,"b":[2]})", {"a=2.5", "c=\"x\""}), R"({"a":2.5,"b":[2],"c":"x"})");
  EXPECT_EQ(with(R"({"r":{"f":1,"g":2},"z":Infinity})", {"r.f=8", "s.t.u=true", "r.g=null"}),
            R"({"r":{"f":8,"g":null},"z":1e+308,"s":{"t":{"u":true}}})");
  EXPECT_EQ(with(R"({"r":null})", {R"(r={"f":1})", "r.f=2"}), R"({"r":{"f":2}})");
  EXPECT_EQ(with("{}", {"list=[1,\"a=b\"]"}), R"({"list":[1,"a=b"]})");
  EXPECT_EQ(with("{}", {"a"}), "--config-override 'a': expected KEY=VALUE, found no '='");
  EXPECT_EQ(with("{}", {"=1"}), "--config-override '=1': expected KEY=VALUE, found no '='");
  EXPECT_EQ(with("{}", {"a..b=1"}), "--config-override 'a..b=1': expected a name between two dots");
  EXPECT_EQ(with("{}", {"a.=1"}), "--config-override 'a.=1': expected a name between two dots");
  EXPECT_EQ(with("{}", {"a=yes"}),
            "--config-override 'a=yes': expected JSON after the '=' (true, 4096, \"text\", null), "
            "found 'yes'");
  EXPECT_EQ(with(R"({"a":7})", {"a.b=1"}),
            "--config-override a.b: expected an object before 'b', found 7");
}

}  // namespace
}  // namespace weir::card
