#!/usr/bin/env python3
"""bench/gpu_check reports what it checked, and passes nothing that it did not check. Its programs are fakes.

    gpu_check_test.py BENCH
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

GPU_CHECK = os.path.join(sys.argv[1], "gpu_check")
PROGRAMS = {"kernels_cuda_tests", "runtime_tests"}
EXPECTED = ("score-best", "score-demo", "predict-demo")
PASSES = "echo '[  PASSED  ] 3 tests.'"
SKIPS = "echo '[  PASSED  ] 0 tests.'; echo '[  SKIPPED ] 3 tests, listed below:'"
CLEAN = "echo '========= ERROR SUMMARY: 0 errors'"


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.bundle = os.path.join(self.folder.name, "bundle")
        self.tools = os.path.join(self.folder.name, "tools")
        os.makedirs(os.path.join(self.bundle, "models"))
        os.makedirs(os.path.join(self.bundle, "expected"))
        for name in EXPECTED:
            self.write_expected(name + ".args", f"{name} --ids ids.txt --json")
            self.write_expected(name + ".out", '{"p":1}')
        self.write_expected("launches.out", "1 lanes: 12 launches of the last token")
        self.script(self.tools, "nvidia-smi", "echo a GPU")
        self.kinglet("echo '{\"backend\":\"cuda\",\"p\":1}'")
        self.fake_tests("lane_check", "case \"$*\" in *--launches*) echo '1 lanes: 12 launches of the last token';; esac")
        for name in PROGRAMS:
            self.fake_tests(name, PASSES)

    def script(self, folder, name, body):
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\n{body}\n")
        os.chmod(path, 0o755)

    def write_expected(self, name, text):
        with open(os.path.join(self.bundle, "expected", name), "w") as file:
            file.write(text + "\n")

    def fake_tests(self, name, body):
        self.script(os.path.join(self.bundle, "bin"), name, body)

    def kinglet(self, body):
        self.script(os.path.join(self.bundle, "bin"), "kinglet", body)

    def sanitizer(self, body):
        self.script(self.tools, "compute-sanitizer", body)

    def device_tests(self):
        listed = subprocess.run([GPU_CHECK, "--tests"], check=True, text=True, stdout=subprocess.PIPE)
        return [line.split() for line in listed.stdout.splitlines()]

    def run_check(self, *parts):
        done = subprocess.run([GPU_CHECK, self.bundle, *parts], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={"PATH": f"{self.tools}:/usr/bin:/bin"})
        return done.returncode, done.stdout

    def assert_passes(self, part):
        code, text = self.run_check(part)
        self.assertEqual(code, 0, text)
        self.assertIn(f"all passed: {part}", text)
        self.assertIn(f"-- part {part}: passed", text)

    def assert_fails(self, part, *lines):
        code, text = self.run_check(part)
        self.assertEqual(code, 1, text)
        self.assertNotIn("all passed", text)
        self.assertNotIn(": passed", text)
        for line in lines:
            self.assertIn(line, text)

    def test_without_a_gpu_there_is_one_line(self):
        os.remove(os.path.join(self.tools, "nvidia-smi"))
        self.assertEqual(self.run_check(), (1, "gpu_check: no NVIDIA GPU: nothing can be proven here\n"))

    def test_parts_are_named(self):
        code, text = self.run_check("device", "nonsense")
        self.assertEqual(code, 2)
        self.assertIn('no part "nonsense"', text)
        self.assertNotIn("==", text)

    def test_what_passes_is_kept_whole(self):
        self.assert_passes("device")
        logs = os.listdir(os.path.join(self.bundle, "logs"))
        for name, _, _ in self.device_tests():
            self.assertTrue(any(name.replace(".", "-") in log for log in logs), logs)

    def test_the_list_names_each_test_its_program_and_its_cases(self):
        tests = self.device_tests()
        self.assertEqual({program for _, program, _ in tests}, PROGRAMS)
        self.assertEqual([name for name, _, _ in tests if name.startswith("runtime.")], ["runtime.session_device"])
        self.assertNotIn("*", [cases for _, _, cases in tests])

    def test_each_program_is_told_which_cases_to_run(self):
        for name in PROGRAMS:
            self.fake_tests(name, f"echo {name} $*; {PASSES}")
        self.assert_passes("device")
        for name, program, cases in self.device_tests():
            log = os.path.join(self.bundle, "logs", f"tests-on-the-device-{name.replace('.', '-')}.log")
            with open(log) as file:
                self.assertEqual(file.readline(), f"{program} --gtest_filter={cases}\n")

    def test_tests_that_skip_or_are_not_there_do_not_pass(self):
        for body in (SKIPS, "echo '[  PASSED  ] 0 tests.'", PASSES + "; echo '[  SKIPPED ] 1 test, listed below:'", "true",
                     PASSES + "; exit 1"):
            self.fake_tests("runtime_tests", body)
            self.assert_fails("device", "failed: tests on the device: runtime.session_device")

    def test_digits_that_differ_fail(self):
        for body in ("echo '{\"p\":2}'", "true"):  # another digit; nothing at all
            self.kinglet(body)
            self.assert_fails("device", "failed: the bits of cpu: demo model")

    def test_nodes_are_asked_for_one_by_one(self):
        self.kinglet("[ -n \"$KINGLET_CUDA_NODE_BY_NODE\" ] && echo '{\"backend\":\"cuda\",\"p\":1}'")
        self.assert_passes("launches")
        self.kinglet("[ \"$KINGLET_CUDA_NODE_BY_NODE\" != 1 ] && echo '{\"backend\":\"cuda\",\"p\":1}'")
        self.assert_fails("launches", "failed: the bits of cpu, node by node", "-- part launches: FAILED")

    def test_other_launches_than_planned_fail(self):
        self.fake_tests("lane_check", "echo '1 lanes: 13 launches of the last token'")
        self.assert_fails("launches", "failed: launches per step as planned")

    def test_logs_go_where_the_caller_says(self):
        logs = os.path.join(self.folder.name, "kept", "here")
        done = subprocess.run([GPU_CHECK, "--logs", logs, self.bundle, "launches"], stdout=subprocess.DEVNULL,
                              env={"PATH": f"{self.tools}:/usr/bin:/bin"})
        self.assertEqual(done.returncode, 0)
        self.assertTrue(os.listdir(logs))
        self.assertFalse(os.path.exists(os.path.join(self.bundle, "logs")))

    def test_a_copy_in_the_bundle_needs_no_argument(self):
        shutil.copy(GPU_CHECK, self.bundle)
        done = subprocess.run([os.path.join(self.bundle, "gpu_check"), "launches"], text=True, stdout=subprocess.PIPE,
                              env={"PATH": f"{self.tools}:/usr/bin:/bin"})
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_folder_without_a_bundle_is_refused(self):
        done = subprocess.run([GPU_CHECK, "nowhere"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual((done.returncode, done.stdout),
                         (2, "gpu_check: expected a folder that bench/gpu_bundle made, found nowhere\n"))

    def test_without_nsight_compute_nothing_is_profiled(self):
        self.assert_fails("profile", "gpu_check: not checked: profile: one lane", "-- part profile: not wholly checked")
        self.script(self.tools, "ncu", "true")
        self.assert_passes("profile")

    def test_what_a_sanitizer_refuses_is_not_checked(self):
        self.sanitizer(f"echo 'Error: Device not supported.'; {PASSES}; {CLEAN}")
        self.assert_fails("memcheck", "gpu_check: not checked: memcheck")
        self.sanitizer(f"{SKIPS}; {CLEAN}")
        self.assert_fails("synccheck", "gpu_check: not checked: synccheck")

    def test_what_a_sanitizer_finds_fails(self):
        self.sanitizer(f"{PASSES}; echo '========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)'; exit 9")
        self.assert_fails("racecheck", "gpu_check: failed: racecheck")
        self.sanitizer(f"{PASSES}; {CLEAN}")
        self.assert_passes("racecheck")

    def test_a_bench_that_fails_fails(self):
        self.assert_passes("lanes")
        self.kinglet("exit 1")
        self.assert_fails("lanes", "failed: 1,024 lanes")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
