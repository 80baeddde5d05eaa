#!/usr/bin/env python3
"""The manifest of foreign kernels, its recorded results and their page, and what run.py says when something is missing.

Needs no package and runs no kernel.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "scripts" / "foreign_kernels"
sys.path.insert(0, str(SCRIPTS))
import manifest  # noqa: E402
import run  # noqa: E402
import table  # noqa: E402


class ForeignKernels(unittest.TestCase):
    def setUp(self):
        self.rows, self.judgements = manifest.load([SCRIPTS / "manifest.json"])
        self.kernels = json.loads((SCRIPTS / "results.json").read_text())["kernels"]

    def call(self, *options, rows=None, contents=""):
        """run.py with these rows besides its own, and a library of these contents: exit status and stderr."""
        with tempfile.TemporaryDirectory() as directory:
            extra = pathlib.Path(directory) / "extra.json"
            extra.write_text(json.dumps({"kernels": rows or []}))
            library = pathlib.Path(directory) / "library.so"
            library.write_text(contents)
            made = subprocess.run([sys.executable, SCRIPTS / "run.py", "--manifest", extra, "--library", library, *options],
                                  capture_output=True, text=True)
        self.assertLessEqual(len(made.stderr.splitlines()), 1, made.stderr)
        return made.returncode, made.stderr

    def test_has_thirty_kernels(self):
        self.assertGreaterEqual(len(self.rows), 30)

    def test_incomplete_rows_are_refused_by_name(self):
        for change, wanted in [({"oracle": ""}, '"oracle" is missing'), ({"size": 3}, '"size" is missing'),
                               ({"devices": ["b300"]}, 'device "b300"'), ({"colour": "red"}, '"colour" is not known'),
                               ({"function": "triton_gemm:no_such"}, "no function no_such"),
                               ({"arguments": {"q": 1}}, "takes no argument q")]:
            row = dict(self.rows[0], **change)
            if "arguments" in change:
                row["function"] = "triton_rows:sorted_and_summed"
            with self.assertRaises(manifest.ManifestError, msg=str(change)) as caught:
                manifest.check(row, "manifest.json")
            self.assertIn(wanted, str(caught.exception))

    def test_results_are_of_rows_of_the_manifest(self):
        known = {(row["name"], device): row for row in self.rows for device in row["devices"]}
        recorded = {(kernel["name"], kernel["device"]) for kernel in self.kernels}
        self.assertGreaterEqual(len({name for name, _ in recorded}), 15)
        self.assertLessEqual(recorded, set(known), "recorded, but no row of the manifest")
        for kernel in self.kernels:
            row = known[kernel["name"], kernel["device"]]
            for field in ("project", "exercises", "size", "oracle"):
                self.assertEqual(kernel[field], row[field], f"{kernel['name']}: recorded with another {field}")
            for order in ("eager", "late", "random"):
                for profile in ("hardware", "manual"):
                    self.assertIn(f"{profile} {order}", kernel["runs"], kernel["name"])

    def test_page_shows_what_is_recorded(self):
        page = (ROOT / "docs" / "foreign-kernels.md").read_text()
        self.assertEqual(table.with_tables(page, self.kernels, self.judgements), page, "run.py --record writes the tables")
        recorded = {(kernel["name"], kernel["device"]) for kernel in self.kernels}
        for row in self.rows:
            for device in row["devices"]:
                if (row["name"], device) not in recorded:
                    self.assertIn(f"{row['name']} ({device})", page, "neither recorded nor named as not recorded")
        self.assertNotIn("not judged", page)

    def test_orders(self):
        self.assertEqual(run.orders_of("late,random:3-5"), ["late", "random:3", "random:4", "random:5"])
        self.assertEqual(run.orders_of("2"), ["eager", "late", "random:1", "random:2"])
        self.assertEqual(run.orders_of("0"), ["eager", "late"])
        for wrong in ("soon", "random", "random:x", "eager:1", "2,3", "-1"):
            with self.assertRaises(run.argparse.ArgumentTypeError):
                run.orders_of(wrong)

    def test_runs_are_divided_among_workers(self):
        def sizes(jobs, orders, frontend="triton"):
            row = dict(self.rows[0], frontend=frontend, devices=["b200"])
            call = types.SimpleNamespace(profiles="hardware,manual", orders=run.orders_of(orders), jobs=jobs)
            return [len(runs) for _, _, runs in run.tasks_of([row], call, None, run.journal.Journal(None, None))]

        self.assertEqual(sizes(1, "100"), [51] * 4)
        self.assertEqual(sizes(4, "100"), [12] * 8 + [6] + [12] * 8 + [6])
        self.assertEqual(sizes(16, "18"), [10, 10] * 2, "a worker that only imports is waste")
        self.assertEqual(sizes(16, "100", "program"), [102] * 2, "each worker would build the program")

    def test_table_tells_hazards_of_the_manual_from_others(self):
        outcome = {"order": "eager", "passed": True, "seconds": 1, "faults": []}
        hazard = {"kind": "shared-race", "message": "m"}
        made = table.summary(self.rows[0], "b200", [], [
            dict(outcome, profile="hardware", hazards=[hazard]),
            dict(outcome, profile="manual", hazards=[hazard, dict(hazard, kind="tensor-race")])])
        self.assertIn("| `shared-race`, `tensor-race` (manual) |", table.render([made], {}))

    def test_runs_of_several_calls_are_one_result(self):
        def made(profile, orders, hazards, passed=True):
            return table.summary(self.rows[0], "b200", ["triton 1"], [
                {"profile": profile, "order": order, "passed": passed, "seconds": 1, "faults": [], "instructions": len(orders),
                 "hazards": [{"kind": kind, "message": "m"} for kind in hazards]} for order in orders])

        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "results.json"
            table.merge(path, [made("hardware", ["eager", "random:1"], ["shared-race"], passed=False)])
            table.merge(path, [made("manual", ["eager"], ["tensor-race"])])
            kernel, = table.merge(path, [made("hardware", ["random:1", "random:2", "random:3"], [])])
            self.assertEqual({key: counts["runs"] for key, counts in kernel["runs"].items()},
                             {"hardware eager": 1, "hardware random": 3, "manual eager": 1})
            self.assertEqual(kernel["hazards"]["shared-race"]["where"], ["hardware eager"])
            self.assertEqual(kernel["hazards"]["tensor-race"]["where"], ["manual eager"])
            self.assertEqual(kernel["failures"], ["hardware eager: no verdict"])
            self.assertEqual(kernel["instructions"], 3)
            kernel, = table.merge(path, [dict(made("manual", ["late"], []), versions=["triton 2"])])
            self.assertEqual(list(kernel["runs"]), ["manual late"], "of another version nothing counts")

    def test_a_journal_keeps_runs(self):
        program = {"name": "p", "project": "P", "frontend": "program", "devices": ["b200", "h200"], "exercises": "e",
                   "size": "s", "oracle": "o"}
        with tempfile.TemporaryDirectory() as directory:
            journal, ran = pathlib.Path(directory) / "journal", pathlib.Path(directory) / "ran"
            row = dict(program, command=["sh", "-c", f"echo run >> {ran}"])

            def call(*options, rows=(row,), contents=""):
                return self.call("--only", "p", "--journal", str(journal), *options, rows=list(rows), contents=contents)

            self.assertEqual(call("--orders", "1", "--budget", "0"), (0, ""))
            self.assertFalse(ran.exists())
            self.assertEqual(call("--orders", "1", "--jobs", "3"), (0, ""))
            self.assertEqual(len(ran.read_text().splitlines()), 2 * 2 * 3)
            self.assertEqual(call("--orders", "2", "--jobs", "3"), (0, ""))
            self.assertEqual(len(ran.read_text().splitlines()), 2 * 2 * 4, "what the journal has does not run again")
            self.assertEqual(len(journal.read_text().splitlines()), 2 * 2 * 4)
            status, message = call(contents="another")
            self.assertEqual(status, 2)
            self.assertIn("on another emulator: one journal for each", message)
            failing = [dict(program, command=["false"])]
            self.assertEqual(call("--orders", "2", rows=failing)[0], 0, "what the journal has counts")
            self.assertEqual(call("--orders", "3", rows=failing)[0], 1)
            self.assertIn("with P and with Q", call(rows=[dict(row, project="Q")])[1])
            journal.write_text("{}\n")
            self.assertIn(f"{journal}:1: not the outcome of a run", call()[1])
        self.assertIn("name a --journal", self.call("--budget", "5")[1])
        self.assertIn("--jobs 0: at least 1", self.call("--jobs", "0")[1])

    def test_says_what_is_missing(self):
        program = {"name": "p", "project": "P", "frontend": "program", "devices": ["b200"], "exercises": "e", "size": "s",
                   "oracle": "o", "command": ["true"]}
        for rows, options, wanted in [
                ([dict(self.rows[0], name="p", packages=["no-such-package"])], [], "-m pip install no-such-package"),
                ([dict(program, checkouts=["sources"])], [], "--checkout sources=DIRECTORY"),
                ([dict(program, build=["/no/such/nvcc"])], [], "built by /no/such/nvcc, which does not run"),
                ([program], ["--checkout", "sources=/no/such"], "not NAME=DIRECTORY"),
                ([program], ["--library", "/no/such.so"], "build the target liblaneshift_emulator.so"),
                ([self.rows[0]], [], "two kernels have the name")]:
            status, message = self.call("--only", "p", *options, rows=rows)
            self.assertEqual(status, 2, message)
            self.assertIn(wanted, message)


if __name__ == "__main__":
    unittest.main()
