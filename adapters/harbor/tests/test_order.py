"""Tests what is passed to Longhaul and to Harbor. Needs neither Harbor nor a network."""

import importlib.util
import pathlib
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).parent.parent / "longhaul_harbor"
# Not imported through the package, which needs Harbor.
spec = importlib.util.spec_from_file_location("order", FOLDER / "order.py")
assert spec is not None and spec.loader is not None
order = importlib.util.module_from_spec(spec)
spec.loader.exec_module(order)


class Order(unittest.TestCase):
    def test_ends_a_minute_before_the_harness_does(self):
        self.assertEqual(order.deadline_for(900), ["--deadline", "840s"])
        self.assertEqual(order.deadline_for(30), ["--deadline", "10s"])
        self.assertEqual(order.deadline_for(None), [])

    def test_works_in_the_container_and_asks_nobody(self):
        words = order.run_arguments("s1", "t1-main-1", limit_seconds=120, model="openai/m", workspace="/app")
        self.assertEqual(
            " ".join(words),
            "run --id s1 --container t1-main-1 --json --questions deny --deadline 60s --model openai/m --workspace-dir /app -",
        )

    def test_finds_the_project_by_the_name_that_the_harness_gives_it(self):
        self.assertEqual(order.project_of("Hello-World__bZZe.kw"), "hello-world__bzze-kw")
        self.assertEqual(order.project_of("_x"), "0_x")

    def test_reads_the_limit_of_a_task(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIsNone(order.limit_in(pathlib.Path(folder)))
            pathlib.Path(folder, "task.toml").write_text("[agent]\ntimeout_sec = 900.0\n")
            self.assertEqual(order.limit_in(pathlib.Path(folder)), 900.0)

    def test_takes_tokens_and_cost_from_the_trajectory(self):
        totals = order.totals_of({"final_metrics": {"total_prompt_tokens": 7, "total_completion_tokens": 2}})
        self.assertEqual((totals["n_input_tokens"], totals["n_output_tokens"], totals["cost_usd"]), (7, 2, None))


if __name__ == "__main__":
    unittest.main()
