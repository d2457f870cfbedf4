"""An external agent: Longhaul runs beside Harbor and works in the container of the trial's task."""

import asyncio
import contextlib
import json
import os
import shlex
from pathlib import Path
from typing import Any, override
from uuid import uuid4

from harbor.agents.base import BaseAgent
from harbor.agents.capabilities import AgentCapabilities
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from harbor.models.environment_type import EnvironmentType

from .order import JUDGED, limit_in, project_of, run_arguments, totals_of

# How often the trajectory is written during a run. If Harbor ends the agent, the trajectory is at most this old.
EXPORT_SECONDS = 60
# Limit for an export, a cancel, or a request to Docker.
SHORT_SECONDS = 50


class LonghaulAgent(BaseAgent):
    """Keyword arguments (`--agent-kwarg`): `command` (default: LONGHAUL_COMMAND, otherwise `longhaul`), `timeout_sec` (Harbor's
    limit if it is not the task's own), `workspace_dir` (the folder to work in; default: the container's working folder)."""

    capabilities = AgentCapabilities(atif=True)

    def __init__(
        self,
        *args: Any,
        command: str | None = None,
        timeout_sec: float | None = None,
        workspace_dir: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(*args, **kwargs)
        self._command = shlex.split(command or os.environ.get("LONGHAUL_COMMAND", "longhaul"))
        self._timeout_sec = timeout_sec
        self._workspace = workspace_dir
        self._session = f"harbor-{uuid4().hex[:12]}"

    @staticmethod
    @override
    def name() -> str:
        return "longhaul"

    @override
    def version(self) -> str | None:
        return "0.1.0"

    @override
    async def setup(self, environment: BaseEnvironment) -> None:
        if environment.type() != EnvironmentType.DOCKER:
            raise RuntimeError(f"longhaul works in Docker containers, not in {environment.type()}.")
        found = await environment.exec("command -v python3 && command -v bash")
        if found.return_code != 0:
            raise RuntimeError("The task's container has no python3 or no bash, which longhaul needs in it.")

    @override
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        arguments = run_arguments(
            self._session,
            await self._container(environment),
            limit_seconds=self._timeout_sec or limit_in(Path(environment.environment_dir).parent),
            model=self.model_name,
            workspace=self._workspace,
        )
        exporting = asyncio.create_task(self._keep_exporting(context))
        code = None
        try:
            code = await self._run(arguments, instruction)
        finally:
            exporting.cancel()
            # If Harbor's limit ended the run, the session must not continue to work while the result is judged.
            await asyncio.shield(self._end(context, cancel=code is None))
        if code not in JUDGED:
            raise RuntimeError(f"longhaul ended with exit code {code}: see {self.logs_dir / 'longhaul.log'}")

    async def _container(self, environment: BaseEnvironment) -> str:
        labels = {"project": project_of(environment.session_id), "service": "main"}
        filters = [f"--filter=label=com.docker.compose.{key}={value}" for key, value in labels.items()]
        names = (await self._said(["docker", "ps", "--format={{.Names}}", *filters])).split()
        if len(names) != 1:
            raise RuntimeError(f"The trial has {len(names)} running containers of its task, and not one.")
        return names[0]

    async def _run(self, arguments: list[str], task: str) -> int:
        self.logs_dir.mkdir(parents=True, exist_ok=True)
        # Opening takes no time: the files are on this machine's disk.
        with open(self.logs_dir / "events.jsonl", "wb") as events, open(self.logs_dir / "longhaul.log", "wb") as log:  # noqa: ASYNC230
            process = await asyncio.create_subprocess_exec(
                *self._command, *arguments, stdin=asyncio.subprocess.PIPE, stdout=events, stderr=log, env=self._environment()
            )
            try:
                await process.communicate(task.encode())
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
        return process.returncode if process.returncode is not None else -1

    async def _end(self, context: AgentContext, *, cancel: bool) -> None:
        if cancel:
            with contextlib.suppress(RuntimeError, TimeoutError):
                await self._said([*self._command, "cancel", self._session])
        await self._export(context)

    async def _keep_exporting(self, context: AgentContext) -> None:
        while True:
            await asyncio.sleep(EXPORT_SECONDS)
            await self._export(context)

    async def _export(self, context: AgentContext) -> None:
        """Exports from Longhaul's database, which has every step even if the client has ended."""
        try:
            text = await self._said([*self._command, "export", self._session, "--format", "atif"])
            trajectory = json.loads(text)
        except (RuntimeError, TimeoutError, ValueError) as error:
            self.logger.warning("longhaul: no trajectory (%s)", error)
            return
        draft = self.logs_dir / "trajectory.json.new"
        draft.write_text(text)
        draft.replace(self.logs_dir / "trajectory.json")
        for field, value in totals_of(trajectory).items():
            setattr(context, field, value)
        context.metadata = {"session": self._session, **trajectory.get("extra", {})}

    async def _said(self, words: list[str]) -> str:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._environment(),
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), SHORT_SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        if process.returncode != 0:
            raise RuntimeError(f"{words[0]}: {err.decode(errors='replace').strip()[-500:]}")
        return out.decode()

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self._extra_env}
