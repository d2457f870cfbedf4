from typing import Any

class AgentContext:
    n_input_tokens: int | None
    metadata: dict[str, Any] | None
