from pathlib import Path
from typing import Any

class TrajectoryValidator:
    errors: list[str]
    def validate(self, trajectory: dict[str, Any] | str | Path) -> bool: ...
