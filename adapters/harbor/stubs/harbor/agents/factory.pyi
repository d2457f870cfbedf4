from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent

class AgentFactory:
    @classmethod
    def create_agent_from_import_path(
        cls, import_path: str, logs_dir: Path, model_name: str | None = None, **kwargs: Any
    ) -> BaseAgent: ...
