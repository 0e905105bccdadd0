"""Emitters and environments in processes that are forked, spawned, and killed by nobody."""

import multiprocessing
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

from support import Corridor, ToFiles, walk

import rewardwatch

NOWHERE = "127.0.0.1:1"  # no broker listens on port 1


def work(env):
    walk(env, [1, 1, 1])


class ProcessesTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.files = ToFiles(Path(directory.name))
        self.emitter = rewardwatch.Emitter(connect=self.files)
        self.addCleanup(self.emitter.close)

    def test_children_have_connections_and_ids_of_their_own(self):
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method):
                env = rewardwatch.wrap(Corridor(), self.emitter, policy="p")
                walk(env, [1])
                context = multiprocessing.get_context(method)
                children = [context.Process(target=work, args=(env,)) for _ in range(2)]
                for child in children:
                    child.start()
                for child in children:
                    child.join(30)
                    self.assertEqual(child.exitcode, 0)
                walk(env, [1])
                self.assertEqual(self.emitter.flush(), 0)
                sent = self.files.events()
                for child in children:
                    self.assertEqual(len(sent[child.pid]), 3, "a child flushes at its end")
                agents = {e["agent_id"] for pid in sent if pid != os.getpid() for e in sent[pid]}
                self.assertNotIn(sent[os.getpid()][-1]["agent_id"], agents)
                ids = [e["episode_id"] + str(e["step"]) for events in sent.values() for e in events]
                self.assertEqual(len(ids), len(set(ids)), "an event of the parent is not sent by its child")

    def test_what_is_queued_at_a_fork_is_sent_once(self):
        for _ in range(5):
            for _ in range(100):
                self.emitter.emit({"policy": "p", "reward": 1})
            child = os.fork()
            if child == 0:
                self.emitter.emit({"policy": "child", "reward": 1})
                os._exit(self.emitter.flush(10))
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(self.emitter.flush(), 0)
        sent = self.files.events()
        self.assertEqual(len(sent.pop(os.getpid())), 500)
        self.assertEqual([[e["policy"] for e in events] for events in sent.values()], [["child"]] * 5)

    def test_a_process_flushes_at_its_end(self):
        script = """
            from pathlib import Path
            import sys
            sys.path.insert(0, "tests")
            from support import Corridor, ToFiles, walk
            import rewardwatch
            emitter = rewardwatch.Emitter(connect=ToFiles(Path(sys.argv[1])))
            walk(rewardwatch.wrap(Corridor(), emitter, policy="p"), [1, 1])
        """
        self.run_script(script, str(self.files.directory))
        self.assertEqual([len(events) for events in self.files.events().values()], [2])

    def test_a_forked_producer_neither_hangs_nor_ends_that_of_its_parent(self):
        script = """
            import os, sys, rewardwatch, rewardwatch.emitter
            rewardwatch.emitter.EXIT_TIMEOUT = 0.2
            emitter = rewardwatch.Emitter(sys.argv[1])
            emitter.emit({"policy": "p", "reward": 1})
            emitter.flush(0.2)
            child = os.fork()
            if child:
                assert os.waitpid(child, 0)[1] == 0
                assert emitter.waiting == 1
            else:
                assert emitter.waiting == 0
                emitter.emit({"policy": "p", "reward": 1})
                assert emitter.flush(0.2) == 1
        """
        self.run_script(script, NOWHERE)

    def run_script(self, script, *args):
        script = textwrap.dedent(script)
        done = subprocess.run(
            [sys.executable, "-c", script, *args],
            cwd=Path(__file__).parent.parent,
            timeout=60,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
