# What the adapter uses of harbor 0.25.0, which is on PyPI and not needed for a check.
import logging
from pathlib import Path
from typing import Any, ClassVar

from harbor.agents.capabilities import AgentCapabilities
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

class BaseAgent:
    logs_dir: Path
    model_name: str | None
    logger: logging.Logger
    capabilities: ClassVar[AgentCapabilities]
    _extra_env: dict[str, str]
    def __init__(self, logs_dir: Path, model_name: str | None = None, *args: Any, **kwargs: Any) -> None: ...
    @staticmethod
    def name() -> str: ...
    def version(self) -> str | None: ...
    async def setup(self, environment: BaseEnvironment) -> None: ...
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None: ...
