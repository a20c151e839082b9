"""Where an engine version keeps its tuning sets: below `/root/.cache/vllm`, one directory for each identity."""

from pathlib import PurePosixPath

from gb300serve.engines.versions import version_key

ROOT = "flashinfer_autotune_cache"
MOUNT = "/root/.cache/vllm"
"""The directory in the container that the cache lies in, for an engine that runs as root."""
PLAIN, RANKED = "autotune_configs.json", "autotune_configs_dp0_rank0.json"
FILES = (PLAIN, RANKED)
# 0.30 names the file without its rank and 0.32 with it; 0.31 was not read.
_RANKED_FROM = "0.31.0"
# 0.33 on one GPU asks FlashInfer's managed store instead.
_ELSEWHERE_FROM = "0.33.0"
ELSEWHERE = "/root/.cache/flashinfer/autotune/v2"


def file_name(version: str | None) -> str:
    """The name of the file that this engine version looks for; a build of unknown age is taken for a recent past."""
    return RANKED if _reached(version, _RANKED_FROM) else PLAIN


def set_path(flashinfer: str, arch: str, identity: str, version: str | None) -> PurePosixPath:
    """The file of one set, below the cache directory."""
    return PurePosixPath(ROOT) / flashinfer / arch / identity / file_name(version)


def note_on(version: str | None) -> str | None:
    """What has to be said of a version whose sets are not found here."""
    if not _reached(version, _ELSEWHERE_FROM):
        return None
    return (
        f"vLLM {version} on one GPU keeps its tuning in {ELSEWHERE}, outside {MOUNT}: it is lost with the container "
        "unless that directory is mounted too, or VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR is set; identities of the engine "
        "configuration play no part there"
    )


def _reached(version: str | None, first: str) -> bool:
    key, limit = version_key(version or ""), version_key(first)
    return key is not None and limit is not None and key >= limit
