"""Whether a verdict of `weir info` is what loading then does. Standard library only."""
import contextlib, json, os, re, shutil, subprocess, sys
import weir_server

sys.path.insert(0, f"{weir_server.SOURCE}/tools")
sys.dont_write_bytecode = True
import checkpoint_shapes

TINY = f"{weir_server.SOURCE}/models/weir-tiny-moe"
MIB, GIB = 1 << 20, 1 << 30
# The model is judged, not the machine that the test runs on.
QUIET = ("--threads", "2")


def info(folder, *options, before_start=None):
    done = subprocess.run([weir_server.WEIR, "info", "--json", "--model", folder, *QUIET, *options],
                          capture_output=True, text=True, preexec_fn=before_start)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def write_mixture(folder, layers=40, form="4-bit g64"):
    """A mixture of experts, 2.3 GB of them with 40 layers, whose weights are zeros; it speaks the tiny model's
    tokens."""
    with open(f"{TINY}/config.json") as file:
        vocab = json.load(file)["vocab_size"]
    config = {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "vocab_size": vocab,
              "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": layers, "num_attention_heads": 16,
              "num_key_value_heads": 4, "head_dim": 64, "hidden_act": "silu", "max_position_embeddings": 32768,
              "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "moe_intermediate_size": 512, "num_experts": 64,
              "num_experts_per_tok": 4, "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [],
              "tie_word_embeddings": False, "attention_bias": False}
    checkpoint_shapes.write(folder, config, form)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(f"{TINY}/{name}", folder)


def starts(folder, *options, before_start=None):
    """The log of a server that came up and answered; None: it did not start."""
    arguments = ["--model", folder, *QUIET, *options]
    try:
        with weir_server.Server(*arguments, before_start=before_start) as server:
            answer = server.post("/v1/completions", {"model": "default", "prompt": "Once upon", "max_tokens": 2})
            assert answer["usage"]["completion_tokens"] == 2, answer
            return server.logged()
    except AssertionError as error:
        if "before it was ready" not in str(error):
            raise
        assert "memory" in str(error), error
        return None


def check(case, folder, *options, before_start=None):
    """Loads the model in the way that its verdict tells, and in no better one; the verdict."""
    said = info(folder, *options, before_start=before_start)
    fit = said["fit"]
    more = fit["options"].split()
    log = starts(folder, *options, *more, before_start=before_start)
    if fit["verdict"] != "no":
        case.assertIsNotNone(log, fit)
        # What a control group has free changes by some pages between two programs.
        spare = 0 if before_start is None else 4 * 32
        case.assertAlmostEqual(int(re.search(r"limits context=(\d+)", log)[1]), fit["context"], delta=spare, msg=fit)
    elif not fit["options"]:
        case.assertIsNone(log, fit)
    if fit["verdict"] == "fits":
        case.assertEqual(fit["options"], "")
    if fit["verdict"] not in ("fits", "short"):
        case.assertIsNone(starts(folder, *options, before_start=before_start), f"it runs as it is: {fit}")
    if fit["verdict"] == "streams":
        case.assertIn("--stream-experts", more)
    return fit["verdict"]


@contextlib.contextmanager
def control_group(limit):
    """A control group with so much memory; a function for `before_start`. Needs root."""
    version_2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
    root = "/sys/fs/cgroup" if version_2 else "/sys/fs/cgroup/memory"
    path = f"{root}/weir-fit-{os.getpid()}"
    if version_2:
        with open(f"{root}/cgroup.subtree_control", "w") as file:
            file.write("+memory")
    os.mkdir(path)
    try:
        with open(f"{path}/memory.{'max' if version_2 else 'limit_in_bytes'}", "w") as file:
            file.write(str(limit))

        def join():
            with open(f"{path}/cgroup.procs", "w") as file:
                file.write(str(os.getpid()))
        yield join
    finally:
        weir_server.eventually(lambda: not os.path.exists(path) or removed(path), 10, "the group is empty")


def removed(path):
    with contextlib.suppress(OSError):
        os.rmdir(path)
    return not os.path.exists(path)
