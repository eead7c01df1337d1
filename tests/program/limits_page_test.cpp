// The figures of docs/limits.md are those of the code: this makes them, and compares.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "api/memory/memory_lease.h"
#include "base/byte_size.h"
#include "base/fair_budget.h"
#include "net/http.h"
#include "program/memory_plan.h"

namespace weir {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Memory that the server may take: nine tenths of these groups or machines.
constexpr std::array<int64_t, 5> kMachines = {512, 700, 2048, 8192, 24'576};

MemoryLimit limit_of(int64_t mib) { return {mib * kMiB / 10 * 9, "test"}; }

// A model of 0.5 GiB or, where memory is short, 0.1, and a context of 4,096.
MemoryPlan plan_of(int64_t mib) {
  const ModelFootprint model{.scratch = (mib < 2048 ? 140 : 540) * kMiB,
                             .kv_groups = {{.page_bytes = 160 << 10}},
                             .context_max = 4096,
                             .vocab_size = 32'000,
                             .hidden_size = 1024};
  const auto plan = plan_memory({}, limit_of(mib), model);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? *plan : MemoryPlan{};
}

size_t size(int64_t bytes) { return static_cast<size_t>(bytes); }

// All of it, what one address gets bit by bit, and at once.
std::string shared(int64_t all) {
  const FairBudget budget(size(all));
  const auto share = static_cast<int64_t>(size(all) / 2);
  const auto at_once = static_cast<int64_t>(FairBudget::most_of_one(size(all)));
  return human_bytes(all) + " / " + human_bytes(share) + " / " + human_bytes(at_once);
}

std::string shared_by_callers(int64_t all) {
  const api::MemoryBudget budget(size(all));
  return human_bytes(all) + " / " + human_bytes(static_cast<int64_t>(budget.share_of_one())) +
         " / " + human_bytes(static_cast<int64_t>(budget.most_of_one()));
}

struct Row {
  const char* what;
  std::function<std::string(int64_t mib)> figure;
};

const std::array<Row, 9> kRows = {{
    {"one head", [](int64_t) { return human_bytes(int64_t{net::HttpLimits().header_bytes_max}); }},
    {"heads", [](int64_t mib) { return shared(plan_heads({}, limit_of(mib))); }},
    {"one body", [](int64_t mib) { return human_bytes(plan_bodies({}, limit_of(mib)).largest); }},
    {"bodies that arrive",
     [](int64_t mib) { return shared(plan_bodies({}, limit_of(mib)).arriving); }},
    {"small bodies", [](int64_t mib) { return shared(plan_bodies({}, limit_of(mib)).small); }},
    {"answers not taken", [](int64_t mib) { return shared(plan_answers(limit_of(mib))); }},
    {"bodies being prepared",
     [](int64_t mib) { return shared_by_callers(plan_of(mib).bodies.preparing); }},
    {"open requests", [](int64_t mib) { return shared_by_callers(plan_of(mib).request_bytes); }},
    {"stored responses", [](int64_t mib) { return human_bytes(plan_of(mib).responses_bytes); }},
}};

std::string figures() {
  std::string page = "| at most |";
  for (const int64_t mib : kMachines)
    page += " " +
            (mib < 1024 ? std::to_string(mib) + " MiB" : std::to_string(mib / 1024) + " GiB") +
            " |";
  page += "\n| --- |";
  for (size_t i = 0; i < kMachines.size(); ++i) page += " --- |";
  for (const Row& row : kRows) {
    page += "\n| " + std::string(row.what) + " |";
    for (const int64_t mib : kMachines) page += " " + row.figure(mib) + " |";
  }
  return page + "\n";
}

TEST(LimitsPage, HasTheFiguresOfTheCode) {
  const std::string path = std::string(WEIR_SOURCE_DIR) + "/docs/limits.md";
  const auto read = [&path] {
    std::ifstream file(path);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  };
  std::string page = read();
  const size_t begin = page.find("| at most |");
  ASSERT_NE(begin, std::string::npos);
  const size_t end = page.find("\n\n", begin) + 1;
  if (::getenv("WEIR_WRITE_PAGES")) {
    page.replace(begin, end - begin, figures());
    std::ofstream(path) << page;
    return;
  }
  EXPECT_EQ(page.substr(begin, end - begin), figures())
      << "WEIR_WRITE_PAGES=1 program_test writes them into docs/limits.md";
}

}  // namespace
}  // namespace weir
