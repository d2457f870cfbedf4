"""The command line and settings for longhaul from a trial, and the result for Harbor from a run. Pure, without Harbor."""

import re
import tomllib
from pathlib import Path

# Harbor kills at its limit without notice: so long before it the run ends by itself, in order.
MARGIN_SECONDS = 60
# longhaul takes no shorter deadline.
LEAST_SECONDS = 10
# Completed, or stopped by a limit: the work is there to be judged.
JUDGED = (0, 3)


def project_of(session_id: str) -> str:
    """The compose project of a trial's environment, as Harbor names it."""
    name = session_id.lower()
    return re.sub(r"[^a-z0-9_-]", "-", name if re.match(r"[a-z0-9]", name) else "0" + name)


def limit_in(task_folder: Path) -> float | None:
    """Seconds that a task gives its agent, before Harbor's own overrides and multipliers."""
    try:
        task = tomllib.loads((task_folder / "task.toml").read_text())
    except (OSError, tomllib.TOMLDecodeError):
        return None
    seconds = task.get("agent", {}).get("timeout_sec")
    return float(seconds) if isinstance(seconds, int | float) else None


def deadline_for(limit_seconds: float | None) -> list[str]:
    if limit_seconds is None:
        return []
    return ["--deadline", f"{max(LEAST_SECONDS, int(limit_seconds - MARGIN_SECONDS))}s"]


def run_arguments(
    session: str,
    container: str,
    *,
    limit_seconds: float | None,
    model: str | None = None,
    workspace: str | None = None,
) -> list[str]:
    """The task itself comes on standard input."""
    return [
        *("run", "--id", session, "--container", container, "--json", "--questions", "deny"),
        *deadline_for(limit_seconds),
        *(["--model", model] if model else []),
        *(["--workspace-dir", workspace] if workspace else []),
        "-",
    ]


def totals_of(trajectory: dict) -> dict:
    """Fields of Harbor's context."""
    metrics = trajectory.get("final_metrics", {})
    return {
        "n_input_tokens": metrics.get("total_prompt_tokens"),
        "n_cache_tokens": metrics.get("total_cached_tokens"),
        "n_output_tokens": metrics.get("total_completion_tokens"),
        "cost_usd": metrics.get("total_cost_usd"),
    }
