"""Longhaul as an agent of Harbor: `--agent-import-path longhaul_harbor:LonghaulAgent`."""

from .agent import LonghaulAgent

__all__ = ["LonghaulAgent"]
