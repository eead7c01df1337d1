#include "api/exchange/api_stats.h"

#include <gtest/gtest.h>

namespace weir::api {
namespace {

// What stands between two texts of the page.
std::string between(const std::string& page, const std::string& begin, const std::string& end) {
  const size_t from = page.find(begin), to = page.find(end);
  EXPECT_LT(from, to);
  return from < to && to != std::string::npos ? page.substr(from, to - from) : std::string();
}

std::string page_of(const sched::EngineStats& stats) {
  MetricsFacts facts;
  facts.model = "m";
  return metrics_page(ApiStats(), stats, nullptr, facts);
}

// Of an engine whose figures are 1, 2, 3 and so on.
constexpr const char* kShown = R"(# HELP weir_requests_running Sequences with KV pages.
# TYPE weir_requests_running gauge
weir_requests_running 1
# HELP weir_requests_waiting Requests without KV pages.
# TYPE weir_requests_waiting gauge
weir_requests_waiting 2
# HELP weir_kv_pages KV pages that there are.
# TYPE weir_kv_pages gauge
weir_kv_pages 3
# HELP weir_kv_page_tokens Tokens of a KV page.
# TYPE weir_kv_page_tokens gauge
weir_kv_page_tokens 4
# HELP weir_kv_bytes Memory of all KV pages, once they have been used.
# TYPE weir_kv_bytes gauge
weir_kv_bytes 5
# HELP weir_kv_usage Share of KV pages held by sequences.
# TYPE weir_kv_usage gauge
weir_kv_usage 6
# HELP weir_kv_pages_cached KV pages that only the prefix cache holds.
# TYPE weir_kv_pages_cached gauge
weir_kv_pages_cached 7
# HELP weir_kv_window_pages KV pages of layers that see a window only.
# TYPE weir_kv_window_pages gauge
weir_kv_window_pages 8
# HELP weir_kv_window_pages_held Of those, pages that sequences hold.
# TYPE weir_kv_window_pages_held gauge
weir_kv_window_pages_held 9
# HELP weir_kv_window_pages_cached Of those, pages that only the prefix cache holds.
# TYPE weir_kv_window_pages_cached gauge
weir_kv_window_pages_cached 10
# HELP weir_state_bytes Memory of the states of one sequence, or of one checkpoint.
# TYPE weir_state_bytes gauge
weir_state_bytes 11
# HELP weir_state_checkpoint_slots Checkpoints of states that there is room for.
# TYPE weir_state_checkpoint_slots gauge
weir_state_checkpoint_slots 12
# HELP weir_state_checkpoints Checkpoints of states, for the prefix cache.
# TYPE weir_state_checkpoints gauge
weir_state_checkpoints 13
# HELP weir_kv_bytes_taken Memory of KV pages now; what is unused goes back.
# TYPE weir_kv_bytes_taken gauge
weir_kv_bytes_taken 14
# HELP weir_steps_total Forward passes.
# TYPE weir_steps_total counter
weir_steps_total 15
# HELP weir_prompt_tokens_computed_total Prompt tokens computed, cached ones left out.
# TYPE weir_prompt_tokens_computed_total counter
weir_prompt_tokens_computed_total 16
# HELP weir_generated_tokens_total Tokens of answers.
# TYPE weir_generated_tokens_total counter
weir_generated_tokens_total 17
# HELP weir_forced_tokens_total Of those, the ones that a grammar left no choice about.
# TYPE weir_forced_tokens_total counter
weir_forced_tokens_total 18
# HELP weir_drafts_total Drafts of answers' tokens that steps have verified.
# TYPE weir_drafts_total counter
weir_drafts_total 31
# HELP weir_drafts_taken_total Of those, the ones that were right.
# TYPE weir_drafts_taken_total counter
weir_drafts_taken_total 30
# HELP weir_speculative_drafts_total Drafts verified, by their source.
# TYPE weir_speculative_drafts_total counter
weir_speculative_drafts_total{source="prediction"} 0
weir_speculative_drafts_total{source="ngram"} 32
weir_speculative_drafts_total{source="answers"} 0
weir_speculative_drafts_total{source="draft"} 0
weir_speculative_drafts_total{source="mtp"} 0
weir_speculative_drafts_total{source="eagle3"} 0
weir_speculative_drafts_total{source="dflash"} 0
# HELP weir_speculative_drafts_right_total Those that were right.
# TYPE weir_speculative_drafts_right_total counter
weir_speculative_drafts_right_total{source="prediction"} 33
weir_speculative_drafts_right_total{source="ngram"} 0
weir_speculative_drafts_right_total{source="answers"} 0
weir_speculative_drafts_right_total{source="draft"} 0
weir_speculative_drafts_right_total{source="mtp"} 0
weir_speculative_drafts_right_total{source="eagle3"} 0
weir_speculative_drafts_right_total{source="dflash"} 0
# HELP weir_speculative_draft_seconds Time that sources have taken for drafts and to keep up.
# TYPE weir_speculative_draft_seconds gauge
weir_speculative_draft_seconds{source="prediction"} 0
weir_speculative_draft_seconds{source="ngram"} 0
weir_speculative_draft_seconds{source="answers"} 0
weir_speculative_draft_seconds{source="draft"} 0
weir_speculative_draft_seconds{source="mtp"} 0
weir_speculative_draft_seconds{source="eagle3"} 0
weir_speculative_draft_seconds{source="dflash"} 34
# HELP weir_speculative_rounds_total Slices of a step that had drafts.
# TYPE weir_speculative_rounds_total counter
weir_speculative_rounds_total 35
# HELP weir_speculative_steps_total Steps that had drafts.
# TYPE weir_speculative_steps_total counter
weir_speculative_steps_total 36
# HELP weir_speculative_steps_off_total Steps without drafts, because those have cost too much.
# TYPE weir_speculative_steps_off_total counter
weir_speculative_steps_off_total 37
# HELP weir_speculative_loss_seconds Time that steps with drafts have cost lately, beyond plain ones.
# TYPE weir_speculative_loss_seconds gauge
weir_speculative_loss_seconds 38
# HELP weir_prefix_cache_queries_total Prompt tokens looked up in the prefix cache.
# TYPE weir_prefix_cache_queries_total counter
weir_prefix_cache_queries_total 19
# HELP weir_prefix_cache_hits_total Prompt tokens found in the prefix cache.
# TYPE weir_prefix_cache_hits_total counter
weir_prefix_cache_hits_total 20
# HELP weir_preemptions_total Sequences that gave their pages back for a while.
# TYPE weir_preemptions_total counter
weir_preemptions_total 21
# HELP weir_loop_wakes_total Wakes of the network loop by the engine.
# TYPE weir_loop_wakes_total counter
weir_loop_wakes_total 22
)";

// Names, help texts and their order are what dashboards were made with.
TEST(MetricsPage, ShowsTheEnginesFiguresByTheirNames) {
  sched::EngineStats stats;
  stats.running.set(1);
  stats.waiting.set(2);
  stats.pages.set(3);
  stats.page_tokens.set(4);
  stats.kv_bytes.set(5);
  stats.kv_usage.set(6);
  stats.pages_cached.set(7);
  stats.window_pages.set(8);
  stats.window_pages_held.set(9);
  stats.window_pages_cached.set(10);
  stats.state_bytes.set(11);
  stats.checkpoint_slots.set(12);
  stats.checkpoints.set(13);
  stats.kv_taken.set(14);
  stats.steps.add(15);
  stats.prompt_tokens.add(16);
  stats.generated_tokens.add(17);
  stats.forced_tokens.add(18);
  stats.drafts.add(31);
  stats.drafts_taken.add(30);
  stats.drafted[sched::DraftKind::kNgram].add(32);
  stats.drafted_right[sched::DraftKind::kPrediction].add(33);
  stats.draft_seconds[sched::DraftKind::kDflash].set(34);
  stats.draft_rounds.add(35);
  stats.draft_steps.add(36);
  stats.draft_steps_off.add(37);
  stats.draft_loss.set(38);
  stats.prefix_queries.add(19);
  stats.prefix_hits.add(20);
  stats.preemptions.add(21);
  stats.wakes.add(22);
  stats.queue_time.observe(2);
  stats.step_time.observe(3);
  const std::string page = page_of(stats);
  EXPECT_EQ(between(page, "# HELP weir_requests_running ", "# HELP weir_queue_seconds "), kShown);
  const std::string times =
      between(page, "# HELP weir_queue_seconds ", "# HELP weir_http_answers_total ");
  EXPECT_TRUE(
      times.starts_with(R"(# HELP weir_queue_seconds From arrival to the first planned slice.
# TYPE weir_queue_seconds histogram
weir_queue_seconds_bucket{le="0.0001"} 0
)")) << times;
  EXPECT_NE(times.find(R"(
weir_queue_seconds_sum 2
weir_queue_seconds_count 1
# HELP weir_step_seconds Duration of a forward pass.
# TYPE weir_step_seconds histogram
weir_step_seconds_bucket{le="0.0001"} 0
)"),
            std::string::npos)
      << times;
  EXPECT_NE(times.find("weir_step_seconds_sum 3\nweir_step_seconds_count 1\n"), std::string::npos)
      << times;
}

TEST(MetricsPage, RepeatsFiguresOfTheEngineByVllmsNames) {
  sched::EngineStats stats;
  stats.running.set(3);
  stats.pages.set(64);
  stats.page_tokens.set(32);
  stats.step_tokens.observe(5);
  stats.draft_places[1].add(7);
  const std::string page = page_of(stats);
  for (const char* line :
       {"\nvllm:num_requests_running{model_name=\"m\"} 3\n",
        "\nvllm:cache_config_info{model_name=\"m\",block_size=\"32\",num_gpu_blocks=\"64\"} 1\n",
        "\nvllm:spec_decode_num_accepted_tokens_per_pos_total{model_name=\"m\",position=\"1\"} 7\n",
        "\nvllm:iteration_tokens_total_sum{model_name=\"m\"} 5\n"})
    EXPECT_NE(page.find(line), std::string::npos) << line;
  EXPECT_EQ(page.find("weir_step_tokens"), std::string::npos);  // One name is enough.
}

}  // namespace
}  // namespace weir::api
