from pathlib import Path

class ExecResult:
    return_code: int
    def __init__(self, *, return_code: int) -> None: ...

class BaseEnvironment:
    environment_dir: Path
    session_id: str
    @staticmethod
    def type() -> str: ...
    async def exec(self, command: str) -> ExecResult: ...
