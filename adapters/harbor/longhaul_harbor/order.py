"""Longhaul's command line and settings for a trial, and a run's result for Harbor. Pure functions that do not import Harbor."""

import re
import tomllib
from pathlib import Path
from typing import Any

# Harbor kills the agent at its limit without notice, so the run's deadline is this much earlier.
MARGIN_SECONDS = 60
# The shortest deadline that Longhaul accepts.
LEAST_SECONDS = 10
# Exit codes after which the work can be judged: completed, or stopped by a limit.
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
    """The task itself is passed on standard input."""
    return [
        *("run", "--id", session, "--container", container, "--json", "--questions", "deny"),
        *deadline_for(limit_seconds),
        *(["--model", model] if model else []),
        *(["--workspace-dir", workspace] if workspace else []),
        "-",
    ]


def totals_of(trajectory: dict[str, Any]) -> dict[str, Any]:
    """The fields of Harbor's context that a trajectory gives."""
    metrics = trajectory.get("final_metrics", {})
    return {
        "n_input_tokens": metrics.get("total_prompt_tokens"),
        "n_cache_tokens": metrics.get("total_cached_tokens"),
        "n_output_tokens": metrics.get("total_completion_tokens"),
        "cost_usd": metrics.get("total_cost_usd"),
    }
