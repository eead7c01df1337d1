"""/metrics of the real server: every line is what Prometheus reads, and what gateways and dashboards look for is
there."""
import json, os, tempfile, time, unittest

import prometheus
from weir_server import SOURCE, Server

CHAT = {"model": "weir-tiny-moe", "messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 12,
        "ignore_eos": True}

# What vLLM has for routers, autoscalers and dashboards.
VLLM = {"num_requests_running": "gauge", "num_requests_waiting": "gauge", "kv_cache_usage_perc": "gauge",
        "gpu_cache_usage_perc": "gauge",
        "cache_config_info": "gauge", "prompt_tokens_total": "counter", "generation_tokens_total": "counter",
        "prefix_cache_queries_total": "counter", "prefix_cache_hits_total": "counter",
        "gpu_prefix_cache_queries_total": "counter",
        "gpu_prefix_cache_hits_total": "counter", "num_preemptions_total": "counter",
        "request_success_total": "counter",
        "time_to_first_token_seconds": "histogram", "inter_token_latency_seconds": "histogram",
        "time_per_output_token_seconds": "histogram", "request_time_per_output_token_seconds": "histogram",
        "e2e_request_latency_seconds": "histogram", "request_queue_time_seconds": "histogram",
        "request_prefill_time_seconds": "histogram", "request_decode_time_seconds": "histogram",
        "request_prompt_tokens": "histogram", "request_generation_tokens": "histogram",
        "iteration_tokens_total": "histogram"}


class Page:
    def __init__(self, server, headers=None):
        status, _, body = server.request("GET", "/metrics", headers=headers)
        assert status == 200
        self.families = prometheus.parse(body.decode())

    def values(self, name):
        family = next(f for f in self.families.values() if name in (f.name, f.name + "_sum", f.name + "_count"))
        return {labels: value for (sample, labels), value in family.samples.items() if sample == name}

    def value(self, name):
        (value,) = self.values(name).values()
        return value


class Metrics(unittest.TestCase):
    def test_gateways_find_what_they_read(self):
        with Server("--alias", 'odd"name\\') as server:
            chat = {**CHAT, "model": 'odd"name\\'}
            for body in (chat, {**chat, "n": 2}):
                server.post("/v1/chat/completions", body)
            page = Page(server)
            for name, kind in VLLM.items():
                family = page.families["vllm:" + name]
                self.assertEqual(family.type, kind, name)
                for _, labels in family.samples:
                    self.assertEqual(dict(labels)["model_name"], 'odd"name\\', name)
            (config,) = page.values("vllm:cache_config_info")
            config = dict(config)
            pages, page_tokens = page.value("weir_kv_pages"), page.value("weir_kv_page_tokens")
            self.assertEqual((int(config["num_gpu_blocks"]), int(config["block_size"])), (pages, page_tokens))
            self.assertGreater(page.value("weir_kv_bytes"), pages * page_tokens)
            # Three choices of 12 tokens each.
            self.assertEqual(page.value("vllm:request_generation_tokens_sum"), 36)
            self.assertEqual(page.value("vllm:request_generation_tokens_count"), 3)
            self.assertEqual(page.value("vllm:request_prompt_tokens_sum"), 1.5 * page.value("vllm:prompt_tokens_total"))
            for name in ("prefill_time", "decode_time", "time_per_output_token"):
                self.assertEqual(page.value(f"vllm:request_{name}_seconds_count"), 3, name)
                self.assertGreater(page.value(f"vllm:request_{name}_seconds_sum"), 0, name)
            self.assertAlmostEqual(page.value("vllm:request_decode_time_seconds_sum"),
                                   11 * page.value("vllm:request_time_per_output_token_seconds_sum"), places=6)
            # Every computed token was of a step: 33 that followed another, and of the prompts what was not cached.
            self.assertGreaterEqual(page.value("vllm:iteration_tokens_total_sum"),
                                    33 + page.value("weir_prompt_tokens_computed_total"))

    def test_the_process_tells_what_it_takes(self):
        begun = time.time()
        with Server("--parallel", "7", "--queue", "99", "--max-connections", "123", "--max-body", "1M", "--ctx-size",
                    "512") as server:
            page = Page(server)
            time.sleep(1.1)
            again = Page(server)
            self.assertEqual(page.value("process_start_time_seconds"), again.value("process_start_time_seconds"))
            self.assertLess(abs(page.value("process_start_time_seconds") - begun), 60)
            self.assertGreaterEqual(again.value("process_cpu_seconds_total"), page.value("process_cpu_seconds_total"))
            self.assertLess(abs(page.value("process_resident_memory_bytes") / server.resident_bytes() - 1), 0.5)
            self.assertGreater(page.value("process_virtual_memory_bytes"), page.value("process_resident_memory_bytes"))
            self.assertLessEqual(abs(page.value("process_open_fds") - server.open_files()), 3)
            self.assertGreater(page.value("process_max_fds"), page.value("process_open_fds"))
            self.assertEqual(page.value("process_threads"), len(os.listdir(f"/proc/{server.process.pid}/task")))
            for name, limit in (("weir_requests_running_max", 7), ("weir_requests_open_max", 99),
                                ("weir_http_connections_max", 123),
                                ("weir_http_body_bytes_max", 1 << 20), ("weir_context_tokens_max", 512)):
                self.assertEqual(page.value(name), limit, name)
            (build,) = page.values("weir_build_info")
            version = json.loads(server.get("/version"))
            self.assertEqual({k: v for k, v in build if k != "kernels"}, version)
            self.assertTrue(dict(build)["kernels"])

    def test_the_page_is_sound_with_keys_and_with_experts_from_disk(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("sk-one name=one\nsk-two name=two\n")
            file.flush()
            with Server("--api-key-file", file.name) as server:
                key = {"Authorization": "Bearer sk-one"}
                self.assertEqual(server.request("POST", "/v1/chat/completions", CHAT, key)[0], 200)
                requests = Page(server, key).values("weir_key_requests_total")
                self.assertEqual(requests, {(("key", "one"),): 1, (("key", "two"),): 0})
        with Server("--model", SOURCE + "/models/weir-tiny-moe", "--stream-experts", "--expert-memory",
                    "12M") as server:
            server.post("/v1/chat/completions", CHAT)
            self.assertIn("weir_moe_hit_ratio", Page(server).families)


if __name__ == "__main__":
    unittest.main(verbosity=2)
