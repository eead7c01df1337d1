// What is kept of compiled grammars, and of refused ones; compilations that are interrupted, or
// wanted by several at once. Counted, not timed.
#include "grammar/grammar_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace weir::grammar {
namespace {

using namespace std::chrono_literals;
using Kind = GrammarSource::Kind;

GrammarSource schema(int n) {
  return {
      .kind = Kind::kJsonSchema, .text = "{\"const\":" + std::to_string(n) + "}", .choices = {}};
}

// Needs two to the power of 20 states, and is refused after all of its budget.
GrammarSource hopeless(int n) {
  return {.kind = Kind::kRegex, .text = "(a|b)*a(a|b){20}x" + std::to_string(n), .choices = {}};
}

TEST(GrammarCache, KeepsWhatWasAskedForLately) {
  GrammarCache cache(1 << 20, 3);
  const auto first = cache.get(schema(0));
  ASSERT_TRUE(first);
  for (int n = 1; n < 3; ++n) ASSERT_TRUE(cache.get(schema(n)));
  EXPECT_EQ(cache.get(schema(0))->get(), first->get());
  EXPECT_EQ(cache.hits(), 1u);
  ASSERT_TRUE(cache.get(schema(3)));  // Drops 1.
  EXPECT_EQ(cache.get(schema(0))->get(), first->get());
  EXPECT_EQ(cache.hits(), 2u);
  ASSERT_TRUE(cache.get(schema(1)));
  EXPECT_EQ(cache.hits(), 2u);
  EXPECT_FALSE(cache.get({.kind = Kind::kRegex, .text = "(", .choices = {}}));
}

TEST(GrammarCache, RemembersRefusalsAndTheirErrors) {
  GrammarCache cache(1 << 20);
  const auto first = cache.get(hopeless(1));
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, ErrorCode::kInvalid);
  for (int i = 0; i < 10; ++i) {
    const auto again = cache.get(hopeless(1));
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().message, first.error().message);
  }
  EXPECT_EQ(cache.compilations(), 1u);
  EXPECT_EQ(cache.hits(), 10u);
  EXPECT_GT(cache.bytes(), 0u);
}

TEST(GrammarCache, RefusalsAreBoundedAndDropNoAutomata) {
  GrammarCache cache(64 << 10, 8, 16);
  ASSERT_TRUE(cache.get(schema(0)));
  const auto broken = [](int n) {
    return GrammarSource{.kind = Kind::kRegex, .text = "(" + std::to_string(n), .choices = {}};
  };
  for (int n = 0; n < 100; ++n) EXPECT_FALSE(cache.get(broken(n)));
  EXPECT_LE(cache.bytes(), size_t{64} << 10);
  const uint64_t compiled = cache.compilations();
  ASSERT_TRUE(cache.get(schema(0)));
  EXPECT_FALSE(cache.get(broken(99)));
  EXPECT_EQ(cache.compilations(), compiled) << "the latest are there";
  EXPECT_FALSE(cache.get(broken(0)));
  EXPECT_EQ(cache.compilations(), compiled + 1) << "the oldest is not";
}

TEST(GrammarCache, AnInterruptedCompilationIsNoRefusal) {
  GrammarCache cache(1 << 20);
  Interrupt gone;
  gone.stop();
  const auto cancelled = cache.get(schema(0), {}, &gone);
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(cache.compilations(), 0u) << "nobody wants it";
  EXPECT_FALSE(gone.postponed());

  Interrupt elsewhere;
  elsewhere.allow(0ns);
  ASSERT_FALSE(cache.get(schema(0), {}, &elsewhere));
  EXPECT_TRUE(elsewhere.postponed());
  EXPECT_EQ(cache.compilations(), 0u) << "it was not begun";

  Interrupt hasty;
  hasty.allow(1ns);
  const auto postponed = cache.get(hopeless(1), {}, &hasty);
  ASSERT_FALSE(postponed);
  EXPECT_EQ(postponed.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(hasty.postponed());
  EXPECT_EQ(cache.compilations(), 1u);

  hasty.allow(std::nullopt);
  EXPECT_FALSE(hasty.postponed());
  const auto refused = cache.get(hopeless(1), {}, &hasty);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(cache.compilations(), 2u);
  ASSERT_TRUE(cache.get(schema(0), {}, &hasty));
}

// Each of these comes to an end soon after its interrupt has fired, far from its budget's end.
TEST(GrammarCache, EveryNotationCanBeInterrupted) {
  std::string many = R"({"type":"object","properties":{)";
  for (int i = 0; i < 400; ++i)
    many += (i ? ",\"p" : "\"p") + std::to_string(i) +
            R"(":{"type":"string","pattern":"^[a-z]{1,9}$"})";
  const std::vector<GrammarSource> sources = {
      hopeless(1),
      {.kind = Kind::kJsonSchema, .text = many + "}}", .choices = {}},
      {.kind = Kind::kGbnf, .text = "root ::= ([ab]* [a] [ab]{20} \"x\")", .choices = {}},
      {.kind = Kind::kParts,
       .text = R"({"schema":)" + many + R"(}},"loose":"tool"})",
       .choices = {}}};
  for (const GrammarSource& source : sources) {
    Interrupt interrupt;
    interrupt.allow(1ns);
    interrupt.begin();
    const auto compiled = compile(source, &interrupt);
    ASSERT_FALSE(compiled) << source.text.substr(0, 100);
    EXPECT_EQ(compiled.error().code, ErrorCode::kCancelled) << compiled.error().message;
  }
}

TEST(GrammarCache, EqualGrammarsAreCompiledOnce) {
  GrammarCache cache(1 << 20);
  std::vector<std::thread> threads;
  std::atomic<int> refused{0};
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&] { refused += cache.get(hopeless(1)).has_value() ? 0 : 1; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, 6);
  EXPECT_EQ(cache.compilations(), 1u);
}

// The automaton is held back until the other threads have asked.
TEST(GrammarCache, NobodyWaitsForALongCompilationWhoHasOtherThingsToDo) {
  GrammarCache cache(1 << 20);
  std::atomic<bool> compiling{false}, finish{false};
  std::thread slow([&] {
    EXPECT_TRUE(cache.get(schema(0), [&](Automaton&, Interrupt*) {
      compiling = true;
      while (!finish) std::this_thread::sleep_for(1ms);
    }));
  });
  while (!compiling) std::this_thread::sleep_for(1ms);
  Interrupt limited;
  limited.allow(1h);
  EXPECT_FALSE(cache.get(schema(0), {}, &limited));
  EXPECT_TRUE(limited.postponed()) << "it is to be asked for where waiting harms nobody";
  Interrupt gone;
  gone.stop();
  EXPECT_EQ(cache.get(schema(0), {}, &gone).error().code, ErrorCode::kCancelled);
  EXPECT_FALSE(gone.postponed());
  finish = true;
  slow.join();
  limited.allow(1h);
  EXPECT_TRUE(cache.get(schema(0), {}, &limited));
  EXPECT_EQ(cache.compilations(), 1u);
}

// A cache that has no room hands what was compiled to those who waited for it.
TEST(GrammarCache, WhoWaitsGetsWhatIsNotKept) {
  GrammarCache cache(0);
  std::atomic<bool> compiling{false};
  std::atomic<int> made{0};
  const auto ask = [&] {
    made += cache
                .get(schema(0),
                     [&](Automaton&, Interrupt*) {
                       compiling = true;
                       std::this_thread::sleep_for(100ms);
                     })
                .has_value();
  };
  std::thread first(ask);
  while (!compiling) std::this_thread::sleep_for(1ms);
  std::thread second(ask);
  first.join();
  second.join();
  EXPECT_EQ(made, 2);
  EXPECT_LE(cache.compilations(), 2u);
  EXPECT_EQ(cache.bytes(), 0u);
}

}  // namespace
}  // namespace weir::grammar
