"""Launches of the simulated SGLang: words as a lane of this kind says them, and whole boots of them."""

from dataclasses import replace

from gb300serve.simulator.engine import registry
from gb300serve.simulator.engine.script import Script
from gb300serve.simulator.engine.settings import Settings, SimulatorEnvironment
from tests.support.simulated import STARTED

LAUNCHER = ("python3", "-m", "sglang.launch_server")
WORDS = (
    *("--model-path", "/model", "--host", "0.0.0.0", "--port", "30001", "--quantization", "modelopt_fp4"),
    *("--trust-remote-code", "--served-model-name", "glm-5.3-flash", "--tool-call-parser", "glm47"),
    *("--reasoning-parser", "glm45", "--context-length", "1048576", "--mem-fraction-static", "0.85"),
    *("--cuda-graph-max-bs-decode", "16", "--max-running-requests", "16", "--chunked-prefill-size", "8192"),
    *("--kv-cache-dtype", "fp8_e4m3"),
)
DRAFTED = (*WORDS, "--speculative-algorithm", "DFLASH", "--speculative-draft-model-path", "/draft")
# DeepSeek-V4.1-Flash, as its day-zero lane offloads it: 15 of its 37 layers with experts.
OFFLOADED = (
    *("--model-path", "/model", "--tp", "1", "--mem-fraction-static", "0.9", "--context-length", "32768"),
    *("--offload-group-size", "2", "--offload-num-in-group", "1", "--offload-prefetch-step", "1"),
)
ENVIRONMENT = SimulatorEnvironment(version="0.5.23", model="", engine="sglang")
DEEPSEEK = replace(
    ENVIRONMENT, model="deepseek-ai/DeepSeek-V4.1-Flash", env={"SGLANG_ENABLE_DSV41_ENGRAM_HOST_TABLE": "1"}
)


def settings(words: tuple[str, ...] = WORDS, environment: SimulatorEnvironment = ENVIRONMENT) -> Settings:
    """What these words say, behind their launcher."""
    return registry.parse_settings((*LAUNCHER, *words), environment)


def boot_script(words: tuple[str, ...] = WORDS, environment: SimulatorEnvironment = ENVIRONMENT) -> Script:
    """The whole boot of these words."""
    return registry.boot_script(settings(words, environment), None, STARTED)
