// How long a token mask takes, and compiling a grammar: the vocabularies of real tokenizers,
// grammars as clients send them and as enemies do.
//
//   grammar_bench TOKENIZER.json...
//
// Checks first: the sample text, as the tokenizer splits it, must be allowed token by token. Then
// times every step of the sample and of random walks. The goals are a median of 50 us at 50,000
// tokens and 200 us at 150,000, and no step above 5 ms.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "grammar/matcher.h"
#include "grammar/source.h"
#include "text/tokenizer.h"

namespace {

using namespace weir;
using grammar::Automaton;
using grammar::GrammarSource;
using grammar::Matcher;
using grammar::MatchScratch;
using grammar::TokenTrie;
using Kind = GrammarSource::Kind;

// The thread's own time: the machine has other work.
double now_us() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

double us_since(double begin) { return now_us() - begin; }

struct Case {
  std::string name;
  GrammarSource source;
  std::string text;  // In the language; may be empty.
};

std::string union_of(int count) {
  std::string text = "{\"anyOf\":[";
  for (int i = 0; i < count; ++i)
    text += std::string(i ? "," : "") +
            "{\"type\":\"object\",\"properties\":{\"tool\":{\"const\":\"t" + std::to_string(i) +
            "\"},\"argument\":{\"type\":\"string\"},\"depth\":{\"$ref\":\"#\"}}," +
            "\"required\":[\"tool\",\"argument\"]}";
  return text + "]}";
}

// As a form with so many fields of the usual kinds.
std::string record_of(int count) {
  constexpr const char* kKinds[] = {R"({"type":"string"})", R"({"type":"integer"})",
                                    R"({"type":"boolean"})", R"({"enum":["low","middle","high"]})",
                                    R"({"type":"array","items":{"type":"string"}})"};
  std::string properties, required;
  for (int i = 0; i < count; ++i) {
    const std::string name = "\"field_" + std::to_string(i) + "\"";
    properties += (i ? "," : "") + name + ":" + kKinds[static_cast<size_t>(i) % 5];
    required += (i ? "," : "") + name;
  }
  return "{\"type\":\"object\",\"properties\":{" + properties + "},\"required\":[" + required +
         "],\"additionalProperties\":false}";
}

std::vector<Case> cases() {
  const std::string prose =
      "The quick brown fox jumps over the lazy dog, and then it goes home to write a long report "
      "about everything it has seen in the forest: trees, rivers, and a surprising number of dogs.";
  return {
      {"person",
       {Kind::kJsonSchema,
        R"({"type":"object","properties":{"name":{"type":"string"},
         "age":{"type":"integer","minimum":0,"maximum":150},"email":{"type":"string",
         "format":"email"},"tags":{"type":"array","items":{"enum":["red","green","blue"]}},
         "bio":{"type":"string"}},"required":["name","age","email","tags","bio"],
         "additionalProperties":false})",
        {}},
       "{\"name\": \"Ada Lovelace\", \"age\": 36, \"email\": \"ada@example.com\", \"tags\": "
       "[\"red\", \"blue\"], \"bio\": \"" +
           prose + "\"}"},
      {"40 properties", {Kind::kJsonSchema, record_of(40), {}}, ""},
      {"max length",
       {Kind::kJsonSchema,
        R"({"type":"object","properties":{"a":{"type":"string","maxLength":300},
         "b":{"type":"string","minLength":10,"maxLength":5000}},"required":["a","b"]})",
        {}},
       "{\n  \"a\": \"" + prose + "\",\n  \"b\": \"" + prose + prose + "\"\n}"},
      {"any object",
       {Kind::kJsonObject, "", {}},
       "{\"a\": [1, 2.5, {\"b\": null}], \"text\": \"" + prose + "\", \"x\": true}"},
      {"tree",
       {Kind::kJsonSchema,
        R"({"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{
         "label":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/n"}}},
         "required":["label","children"]}}})",
        {}},
       "{\"label\": \"root\", \"children\": [{\"label\": \"" + prose +
           "\", \"children\": [{\"label\": \"x\", \"children\": []}]}]}"},
      {"union of 50",
       {Kind::kJsonSchema, union_of(50), {}},
       "{\"tool\": \"t17\", \"argument\": \"" + prose + "\"}"},
      {"pattern",
       {Kind::kJsonSchema, R"({"type":"string","pattern":"^[A-Z][a-z]+( [A-Za-z]+)*$"})", {}},
       "\"The quick brown fox jumps over the lazy dog\""},
      {"regex words",
       {Kind::kRegex, "(\\w+ ){3,200}end", {}},
       "the quick brown fox jumps over the end"},
      {"regex any", {Kind::kRegex, ".*", {}}, prose},
      {"regex tag", {Kind::kRegex, "<a>[^<]*</a>", {}}, "<a>" + prose + "</a>"},
      {"regex no a", {Kind::kRegex, "[^a]*", {}}, "The quick brown fox jumps over the dog"},
      {"gbnf list",
       {Kind::kGbnf, "root ::= (\"- \" [^\\n]+ \"\\n\"){1,10}", {}},
       "- " + prose + "\n- done\n"},
      {"gbnf nested",
       {Kind::kGbnf,
        "root ::= x | y\nx ::= \"(\" i \")x\"\ny ::= \"(\" i \")y\"\n"
        "i ::= x | y | [a-z ]+",
        {}},
       "((((the quick brown fox)x)y)x)y"},
      {"text to a marker",
       {Kind::kParts, R"({"until":["</parameter>","</function>"]})", {}},
       prose + " \"1 < 2\"\n</parameter>"},
      {"hostile union", {Kind::kJsonSchema, union_of(150), {}}, ""},
      {"hostile optional", {Kind::kRegex, "(a?b?c?d?e?[a-z ]?){500}", {}}, ""},
      {"hostile words",
       {Kind::kGbnf, "root ::= w | w root\nw ::= [a-z]+ | [a-m]+ w | [ -~]+ w?", {}},
       ""},
  };
}

struct Times {
  std::vector<double> us;
  int64_t least_left = INT64_MAX;  // Of the bound of work.
  double at(double share) {
    if (us.empty()) return 0;
    std::ranges::sort(us);
    return us[std::min(us.size() - 1, static_cast<size_t>(share * static_cast<double>(us.size())))];
  }
};

// Of the bound of a mask's work: 100 and more where tokens were left out.
double share_of_bound(int64_t left) {
  const auto bound = static_cast<double>(Matcher::kMaskWorkMax);
  return 100 * (bound - static_cast<double>(left)) / bound;
}

bool allowed(const std::vector<uint64_t>& mask, int32_t token) {
  return mask[static_cast<size_t>(token) / 64] >> (token % 64) & 1;
}

// Of a copy, which has made no more masks than the original.
double time_mask(Matcher matcher, std::vector<uint64_t>& mask, MatchScratch& scratch) {
  const double begin = now_us();
  matcher.fill_mask(mask, scratch);
  return us_since(begin);
}

// Along the sample; each step is repeated, and the least time counts.
bool follow(Matcher matcher, const std::vector<int32_t>& tokens, Times& times) {
  MatchScratch scratch;
  std::vector<uint64_t> mask(matcher.trie().mask_words());
  for (const int32_t token : tokens) {
    double best = 1e9;
    for (int i = 0; i < 3; ++i) best = std::min(best, time_mask(matcher, mask, scratch));
    matcher.fill_mask(mask, scratch);
    times.us.push_back(best);
    times.least_left = std::min(times.least_left, scratch.work_left());
    if (!allowed(mask, token) || !matcher.accept(token, scratch)) {
      std::printf("the sample is not allowed: token %zu, '%s'\n", times.us.size() - 1,
                  std::string(matcher.trie().bytes(token)).c_str());
      return false;
    }
  }
  return matcher.may_end();
}

void wander(Matcher matcher, unsigned seed, Times& times) {
  MatchScratch scratch;
  std::mt19937 random(seed);
  std::vector<uint64_t> mask(matcher.trie().mask_words());
  for (int i = 0; i < 100 && !matcher.must_end(); ++i) {
    double best = 1e9;
    for (int k = 0; k < 3; ++k) best = std::min(best, time_mask(matcher, mask, scratch));
    matcher.fill_mask(mask, scratch);
    times.us.push_back(best);
    times.least_left = std::min(times.least_left, scratch.work_left());
    std::vector<int32_t> tokens;
    for (int32_t token = 0; token < matcher.trie().vocab_size(); ++token)
      if (allowed(mask, token)) tokens.push_back(token);
    if (tokens.empty()) break;
    CHECK(matcher.accept(tokens[random() % tokens.size()], scratch));
  }
}

int run(const char* path) {
  std::stringstream json;
  json << std::ifstream(path).rdbuf();
  const auto tokenizer = text::Tokenizer::load(json.str());
  if (!tokenizer) {
    std::fprintf(stderr, "%s: %s\n", path, tokenizer.error().message.c_str());
    return 1;
  }
  std::vector<std::string_view> pieces;
  for (int32_t id = 0; id < (*tokenizer)->vocab_size(); ++id)
    pieces.push_back((*tokenizer)->is_special(id) ? std::string_view() : (*tokenizer)->piece(id));
  const auto begin = now_us();
  const auto shared_trie = std::make_shared<const TokenTrie>(pieces);
  const TokenTrie& trie = *shared_trie;
  const double made_us = us_since(begin);
  std::printf("%s: %d tokens, trie %.1f MB (%.0f bytes a token) in %.0f ms, slices:", path,
              trie.vocab_size(), static_cast<double>(trie.memory_bytes()) / 1e6,
              static_cast<double>(trie.memory_bytes()) / trie.vocab_size(), made_us / 1e3);
  for (const TokenTrie::Slice& slice : trie.slices())
    std::printf(" %zu+%zu", slice.count, slice.rest.nodes.size());
  std::printf("\n%-18s %10s %8s %9s | %8s %8s %8s | %8s %8s %8s | %7s\n", "grammar", "compile ms",
              "states", "bytes", "median", "p99", "max", "random", "p99", "max us", "work %");
  for (const Case& c : cases()) {
    const auto compiling = now_us();
    auto compiled = compile(c.source);
    const double compile_ms = us_since(compiling) / 1e3;
    if (!compiled) {
      std::printf("%-18s %10.2f refused: %s\n", c.name.c_str(), compile_ms,
                  compiled.error().message.c_str());
      continue;
    }
    const std::shared_ptr<const Automaton> automaton = std::move(*compiled);
    Times sample, random;
    const Matcher start(automaton, shared_trie);
    if (!c.text.empty()) CHECK(follow(start, (*tokenizer)->encode(c.text), sample));
    for (unsigned seed = 0; seed < 5; ++seed) wander(start, seed, random);
    std::printf("%-18s %10.2f %8zu %9zu | %8.1f %8.1f %8.1f | %8.1f %8.1f %8.1f | %7.0f\n",
                c.name.c_str(), compile_ms, automaton->state_count(), automaton->memory_bytes(),
                sample.at(0.5), sample.at(0.99), sample.at(1), random.at(0.5), random.at(0.99),
                random.at(1), share_of_bound(std::min(sample.least_left, random.least_left)));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: grammar_bench TOKENIZER.json...\n");
    return 2;
  }
  int failures = 0;
  for (int i = 1; i < argc; ++i) failures += run(argv[i]);
  return failures;
}
