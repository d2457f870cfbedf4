"""Runs the agent on Harbor's base classes with a program in place of Longhaul, and checks a trajectory with Harbor's validator."""

import asyncio
import importlib.util
import json
import os
import pathlib
import stat
import sys
import tempfile
import unittest
from typing import Any, cast

HAS_HARBOR = importlib.util.find_spec("harbor") is not None
# Path of a trajectory that Longhaul has written, which Harbor's validator then checks too.
TRAJECTORY = os.environ.get("LONGHAUL_TRAJECTORY")

# Takes the place of `longhaul` and `docker`: records its arguments, and answers as they do.
PROGRAM = """#!{python}
import json, pathlib, sys, time
words = sys.argv[1:]
folder = pathlib.Path(__file__).parent
with open(folder / "calls", "a") as calls:
    calls.write(json.dumps([pathlib.Path(__file__).name, *words]) + "\\n")
if pathlib.Path(__file__).name == "docker":
    print("trial-main-1")
elif words[0] == "run":
    task = sys.stdin.read()
    print(json.dumps({{"type": "session:started", "data": {{"task": task}}}}), flush=True)
    if task == "sleep":
        time.sleep(600)
    sys.exit({{"fail": 1, "limit": 3}}.get(task, 0))
elif words[0] == "export":
    print((folder / "trajectory").read_text())
"""

VALID = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s",
    "agent": {"name": "longhaul", "version": "0.1.0", "model_name": "m"},
    "steps": [
        {"step_id": 1, "timestamp": "2026-11-23T06:00:00Z", "source": "user", "message": "Do it."},
        {"step_id": 2, "timestamp": "2026-11-23T06:00:01Z", "source": "agent", "message": "Done."},
    ],
    "final_metrics": {"total_prompt_tokens": 7, "total_completion_tokens": 2, "total_cached_tokens": 0, "total_steps": 2},
    "extra": {"status": "completed"},
}


@unittest.skipUnless(HAS_HARBOR, "harbor is not installed: pip install harbor==0.25.0 (Python 3.12)")
class Agent(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("longhaul", "docker"):
            program = self.folder / name
            program.write_text(PROGRAM.format(python=sys.executable))
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
        (self.folder / "trajectory").write_text(json.dumps(VALID))
        self.addCleanup(os.environ.__setitem__, "PATH", os.environ["PATH"])
        os.environ["PATH"] = f"{self.folder}:{os.environ['PATH']}"

    def agent(self, **given):
        from harbor.agents.factory import AgentFactory

        return AgentFactory.create_agent_from_import_path(
            "longhaul_harbor:LonghaulAgent", logs_dir=self.folder / "logs", model_name="openai/m", **given
        )

    def environment(self, return_code=0):
        from harbor.environments.base import ExecResult
        from harbor.models.environment_type import EnvironmentType

        class Environment:
            session_id = "Trial__1__env"
            environment_dir = self.folder / "environment"

            @staticmethod
            def type():
                return EnvironmentType.DOCKER

            async def exec(self, command, **_):
                return ExecResult(return_code=return_code)

        return cast(Any, Environment())

    def calls(self):
        return [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]

    async def run_task(self, task, **given):
        from harbor.models.agent.context import AgentContext

        context = AgentContext()
        await self.agent(**given).run(task, self.environment(), context)
        return context

    async def test_runs_in_the_container_of_the_trial_and_brings_a_valid_trajectory(self):
        from harbor.utils.trajectory_validator import TrajectoryValidator

        context = await self.run_task("Do it.", timeout_sec=900)
        calls = self.calls()
        self.assertIn("--filter=label=com.docker.compose.project=trial__1__env", calls[0])
        run = next(words for words in calls if words[1] == "run")
        self.assertEqual(run[run.index("--container") + 1], "trial-main-1")
        self.assertEqual(run[run.index("--deadline") + 1], "840s")
        self.assertEqual(run[run.index("--model") + 1], "openai/m")
        self.assertEqual((context.n_input_tokens, (context.metadata or {})["status"]), (7, "completed"))
        self.assertTrue(TrajectoryValidator().validate(self.folder / "logs" / "trajectory.json"))

    async def test_a_limit_leaves_work_to_judge_and_a_failure_is_an_error(self):
        await self.run_task("limit")
        with self.assertRaisesRegex(RuntimeError, "exit code 1"):
            await self.run_task("fail")
        self.assertTrue((self.folder / "logs" / "trajectory.json").exists())

    async def test_cancels_and_exports_when_the_harness_ends_it(self):
        running = asyncio.create_task(self.run_task("sleep"))
        # What it waits for is a file of another process.
        while not (self.folder / "calls").exists() or len(self.calls()) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        running.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await running
        self.assertEqual([words[1] for words in self.calls()][2:], ["cancel", "export"])
        self.assertTrue((self.folder / "logs" / "trajectory.json").exists())

    async def test_a_container_without_python_is_refused_at_set_up(self):
        agent = self.agent()
        await agent.setup(self.environment())
        with self.assertRaisesRegex(RuntimeError, "python3"):
            await agent.setup(self.environment(return_code=1))

    @unittest.skipUnless(TRAJECTORY, "LONGHAUL_TRAJECTORY names no file")
    def test_what_longhaul_exported_is_valid(self):
        from harbor.utils.trajectory_validator import TrajectoryValidator

        validator = TrajectoryValidator()
        self.assertTrue(validator.validate(pathlib.Path(TRAJECTORY or "")), validator.errors)


if __name__ == "__main__":
    unittest.main()
