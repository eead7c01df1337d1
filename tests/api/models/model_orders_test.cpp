// The bodies that order models, and times as clients of Ollama write them.
#include "api/models/model_orders.h"

#include <gtest/gtest.h>

namespace weir::api {
namespace {

std::string error_of(std::string_view body) {
  const auto order = parse_load(body);
  return order ? "none" : order.error().param + ": " + order.error().message;
}

std::optional<int64_t> seconds_of(std::string_view json) {
  const auto order = parse_load(R"({"model":"m","keep_alive":)" + std::string(json) + "}");
  return order ? order->options.keep_alive : std::nullopt;
}

TEST(ModelOrders, SayWhatIsLoadedAndHow) {
  const auto order = parse_load(
      R"({"model":"m","ctx_size":4096,"kv_memory":1073741824,"pin":true,"keep_alive":"5m"})");
  ASSERT_TRUE(order) << order.error().message;
  EXPECT_EQ(order->model, "m");
  EXPECT_EQ(order->options.ctx_size, 4096);
  EXPECT_EQ(order->options.kv_memory, 1073741824);
  EXPECT_EQ(order->options.pin, true);
  EXPECT_EQ(order->options.keep_alive, 300);
  const auto plain = parse_load(R"({"model":"m","pin":null})");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->options.pin, std::nullopt);
  const auto unload = parse_unload(R"({"model":"m","force":true})");
  ASSERT_TRUE(unload);
  EXPECT_TRUE(unload->force);
  EXPECT_FALSE(parse_unload(R"({"model":"m"})")->force);
}

TEST(ModelOrders, ErrorsNameTheField) {
  EXPECT_TRUE(error_of("{}").starts_with("model: "));
  EXPECT_TRUE(error_of(R"({"model":3})").starts_with("model: "));
  for (const char* field :
       {R"("ctx_size":"big")", R"("ctx_size":-1)", R"("ctx_size":1.5)", R"("kv_memory":-1)",
        R"("pin":1)", R"("keep_alive":"soon")", R"("keep_alive":true)"}) {
    const std::string name = std::string(field).substr(1, std::string(field).find('"', 1) - 1);
    EXPECT_TRUE(error_of(R"({"model":"m",)" + std::string(field) + "}").starts_with(name + ": "))
        << field;
  }
  EXPECT_FALSE(parse_unload(R"({"model":"m","force":"yes"})"));
  EXPECT_FALSE(parse_load("[]"));
}

TEST(ModelOrders, TimesAreSecondsOrOllamasForm) {
  EXPECT_EQ(seconds_of("90"), 90);
  EXPECT_EQ(seconds_of("0"), 0);
  EXPECT_EQ(seconds_of("-1"), -1);
  EXPECT_EQ(seconds_of("1.5"), 2) << "half a second is not at once, which 0 means";
  EXPECT_EQ(seconds_of("0.3"), 1);
  EXPECT_EQ(seconds_of(R"("90")"), 90);
  EXPECT_EQ(seconds_of(R"("1h30m")"), 5400);
  EXPECT_EQ(seconds_of(R"("1500ms")"), 2);
  EXPECT_EQ(seconds_of(R"("-1m")"), -1);
  EXPECT_EQ(seconds_of("1e300"), int64_t{100} * 366 * 86400);
  for (const char* wrong :
       {R"("")", R"("-")", R"("5x")", R"("m5")", R"("5m5")", R"("inf")", R"("nan")", "[]"})
    EXPECT_EQ(seconds_of(wrong), std::nullopt) << wrong;
}

TEST(ModelOrders, AnyBodySaysWhichModelItAsksFor) {
  const auto asked = model_of_body(R"({"messages":[{"model":"no"}],"stream":true,"model":"m"})");
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->name, "m");
  EXPECT_TRUE(asked->stream);
  EXPECT_EQ(model_of_body(R"({"stream":1})")->name, "");
  EXPECT_FALSE(model_of_body(R"({"model":[]})"));
  EXPECT_FALSE(model_of_body("{"));
}

TEST(ModelOrders, QueriesAreDecoded) {
  EXPECT_EQ(query_value("a=1&model=org%2Fname&b=", "model"), "org/name");
  EXPECT_EQ(query_value("models=x", "model"), "");
  EXPECT_EQ(query_value("model", "model"), "");
  EXPECT_EQ(query_value("", "model"), "");
}

}  // namespace
}  // namespace weir::api
