"""The Python module, on a program that runs in TPCs 0-7 of GPU 0: PROGRAM is its pid. tests/cli/api.bats starts it."""

import contextlib
import copy
import errno
import itertools
import os
import pickle
import re
import reprlib
import resource
import select
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import nvtaskset
from nvtaskset import Error, ErrorCode, Group, Partition, Set

PID = int(os.environ["PROGRAM"])
SETTINGS = os.path.join(os.path.dirname(__file__), "../../src/state/settings.h")

@contextlib.contextmanager
def outside(code, **environment):
    """A process of Python's own, without nvtaskset, that has run this code."""
    with subprocess.Popen([sys.executable, "-c", f"import ctypes, os; {code}; print(flush=True); input()"],
                          env=dict(os.environ, **environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


@contextlib.contextmanager
def program(*command, **environment):
    """One in a partition of TPC 1, once it has printed a line: demo/where, or another."""
    with subprocess.Popen(["nvtaskset", "--mps", "off", "-t", "1", *(command or ("where", "60"))],
                          env=dict(os.environ, **environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def limit(which):
    before = resource.getrlimit(which)
    resource.setrlimit(which, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(which, before)


class Case(unittest.TestCase):
    def fails(self, code, function, *arguments):
        with self.assertRaises(Error, msg=arguments) as caught:
            function(*arguments)
        self.assertIs(caught.exception.code, code, caught.exception)
        return caught.exception


class Sets(unittest.TestCase):
    def test_text(self):
        self.assertEqual(Set("0-3,9"), {0, 1, 2, 3, 9})
        self.assertEqual(Set("0x3ff"), Set(range(10)))
        self.assertEqual(Set("0X3FF"), Set(range(10)))
        self.assertEqual(str(Set([9, 1, 2, 3])), "1-3,9")
        self.assertEqual(Set("1-3,9").mask, "20e")
        self.assertEqual(repr(Set("4")), "Set('4')")
        self.assertEqual(Set(""), Set())
        self.assertEqual(str(Set()), "")

    def test_operations_stay_sets(self):
        for made in (Set("0-3") | {9}, Set("0-9") - {4}, Set("1") ^ {2}, Set("1") & {1},
                     Set("1").union([2]), Set("1,2").difference([2])):
            self.assertIs(type(made), Set)
        self.assertEqual(Set("0-3") | {9}, Set("0-3,9"))
        self.assertEqual(hash(Set("1")), hash(frozenset([1])))

        with self.assertRaises(Error):
            Set("1") | {256}


class Arguments(Case):
    """Every argument of every function, wrong in every way."""

    NO_SETS = (b"0-7", bytearray(b"1"), memoryview(b"1"), 5, 1.5, None, object(), [None], [1.0], ["1"], [[]], [b"1"],
               [{}], [-1], [256], [1 << 64], itertools.count(), "x", "0-", "\udc00", "1\0", "0x\udc00", "9" * 100000, b"")
    NO_GPUS = (-1, 1 << 32, 1 << 64, 0.0, None, b"0", [], {}, slice(0, 1), object())
    NO_PIDS = (0, -1, 1 << 31, 1 << 64, 1.0, "1", b"1", None, [], object())
    NO_COUNTS = (0, -1, 1 << 32 | 1, 2.5, "8", None, [], float("nan"), object())
    NO_STRATEGIES = ("best", "", b"packed", None, 0, [], {}, object())

    def refuses(self, function, values):
        for value in values:
            with self.subTest(function=function, value=reprlib.repr(value)):
                self.assertLess(len(str(self.fails(ErrorCode.INVALID, function, value))), 320)

    def test_what_is_wrong(self):
        gpu = nvtaskset.gpus()[0]
        self.refuses(Set, self.NO_SETS)
        for method in ("union", "intersection", "difference", "symmetric_difference", "issubset", "issuperset",
                       "isdisjoint"):
            self.refuses(getattr(Set("1"), method), self.NO_SETS)
        self.refuses(nvtaskset.Gpu, self.NO_GPUS)
        self.refuses(gpu.choose, self.NO_COUNTS)
        self.refuses(lambda used: gpu.choose(1, used), self.NO_SETS)
        self.refuses(lambda strategy: gpu.choose(1, strategy=strategy), self.NO_STRATEGIES)
        self.refuses(Partition, self.NO_PIDS)
        self.refuses(nvtaskset.Watcher, self.NO_PIDS)
        with nvtaskset.Watcher(PID) as watcher:
            self.refuses(watcher.times, self.NO_GPUS)
            self.refuses(watcher.look, (None, "x", [], float("nan"), float("inf"), 1j))
        with Partition(PID) as partition:
            before = partition[0]
            self.refuses(partition.__getitem__, self.NO_GPUS)
            self.refuses(partition.kernels, self.NO_GPUS)
            self.refuses(lambda number: partition.__setitem__(number, "1"), self.NO_GPUS)
            self.refuses(lambda tpcs: partition.__setitem__(0, tpcs), (*self.NO_SETS, "", [], Set()))
            self.assertEqual(partition[0], before)
        partition.close()
        for use in (partition.check, partition.fileno, lambda: partition[0], lambda: partition.counters,
                    lambda: partition.kernels(0), lambda: setattr(partition, "weight", 7)):
            self.refuses(lambda _, use=use: use(), [None])

    def test_names_that_no_gpu_has(self):
        for name in ("x", "", "\udc00", "0000:ff:1f.0", "0\0"):
            self.fails(ErrorCode.NOT_KNOWN, nvtaskset.Gpu, name)

    def test_what_python_refuses(self):
        for wrong in (lambda: Set("1") | 5, lambda: Set("1") & b"1", lambda: Set(1, 2), lambda: Partition(),
                      lambda: Set("1") <= "1-2"):
            self.assertRaises(TypeError, wrong)

    def test_what_is_like_a_number(self):
        class Number:
            def __index__(self):
                return 3

        gpu = nvtaskset.Gpu(nvtaskset.gpus()[0].bus_id)
        self.assertEqual(gpu.number, nvtaskset.Gpu(gpu).number)
        self.assertEqual(Set([Number()]), Set("3"))
        self.assertEqual(len(gpu.choose(Number())), 3)
        self.assertEqual(Set("1").union("2-3", [5]), Set("1-3,5"))
        self.assertTrue(Set("1").isdisjoint("2-3"))


class Gpus(unittest.TestCase):
    def test_description(self):
        gpu = nvtaskset.gpus()[0]
        self.assertEqual((gpu.number, gpu.name, gpu.compute, gpu.sms_per_tpc), (0, "NVIDIA H200", (9, 0), 2))
        self.assertEqual(str(gpu.tpcs), "0-65")
        self.assertEqual(str(gpu.gpcs[1]), "0,8,16,24,62-65")
        self.assertEqual(str(gpu.virtual_gpcs[0]), "0,8,16,24")
        self.assertEqual(Set().union(*gpu.gpcs.values()), gpu.tpcs)

    def test_choice(self):
        gpu = nvtaskset.gpus()[0]
        self.assertFalse(gpu.choose(8, used=gpu.gpcs[2]) & gpu.gpcs[2])
        spread = gpu.choose(8, strategy="distributed")
        self.assertEqual(str(spread), "0-1,8-9,16-17,24-25")
        self.assertEqual(str(gpu.choose(8, strategy="packed")), str(gpu.gpcs[1]))


class Partitions(Case):
    def setUp(self):
        self.partition = Partition(PID)
        self.addCleanup(self.partition.close)
        self.partition[0] = "0-7"

    def test_change(self):
        gpu = nvtaskset.gpus()[0]
        self.assertEqual(self.partition[0], Set("0-7"))
        for name, tpcs in ((0, "8-15"), (gpu, [3, 4]), (gpu.bus_id, gpu.gpcs[3])):
            self.partition[name] = tpcs
            self.assertEqual(self.partition[0], Set(tpcs))
        self.partition[0] |= {1}
        self.assertEqual(self.partition[0], gpu.gpcs[3] | {1})
        self.partition.check()

    def test_counters(self):
        counters = self.partition.counters
        self.assertGreater(counters.restricted, 0)
        self.assertIn("the GPU's topology is unknown", counters.reasons)
        self.assertEqual(sum(counters.reasons.values()), 0)

    def test_kernels(self):
        before, uploads = self.partition.kernels(0), sum(self.partition.counters[:2])
        deadline = time.monotonic() + 60
        while self.partition.kernels(0).ended == before.ended and time.monotonic() < deadline:
            time.sleep(0.01)
        kernels = self.partition.kernels(0)
        self.assertGreater(kernels.ended, before.ended)
        self.assertGreaterEqual(kernels.launched, kernels.ended)
        self.assertGreaterEqual(kernels.launched, uploads)  # The program has no graphs.
        self.assertLess(kernels.in_flight, 100)
        self.assertEqual((kernels.unannounced, kernels.gaps), (0, []))

    def test_times(self):
        with nvtaskset.Watcher(PID) as watcher:
            self.assertEqual(watcher.times(0)[:4], (0, 0, None, None))
            self.assertEqual(watcher.functions(), [])
            deadline = time.monotonic() + 60
            watcher.look(0.3)
            while not watcher.functions()[0].timed and time.monotonic() < deadline:
                watcher.look(0.3)
            times, function = watcher.times(0), watcher.functions()[0]
            self.assertGreater(times.elapsed_ns, 300000000)
            self.assertGreater(times.busy_ns, 0)
            self.assertLess(times.busy_ns, times.span_ns)
            self.assertGreater(times.tpc_ns, times.busy_ns)
            self.assertEqual((times.gaps, times.lost, times.is_presence), ([], 0, False))
            self.assertEqual(function.name, "where")
            # Where the clocks are not known well, a short one has no duration.
            self.assertTrue(0 < function.timed <= times.timed <= function.instances)
            self.assertLessEqual(function.min_ns, function.average_ns)
            self.assertLessEqual(function.average_ns, function.max_ns)
            while watcher.times(0).timed == times.timed and time.monotonic() < deadline:
                watcher.look()
            self.assertGreater(watcher.functions()[0].instances, function.instances)
        with self.assertRaisesRegex(Error, "the watcher was closed here"):
            watcher.look()

    def test_presence(self):
        with program(SIM_FAULTS="time-slices") as process, nvtaskset.Watcher(process.pid) as watcher:
            watcher.look(0.1)
            self.assertIs(watcher.times(0).is_presence, True)

    def test_times_that_are_not_known(self):
        with program(NVTASKSET_ACCOUNT="off") as process:
            with Partition(process.pid) as partition:
                kernels = partition.kernels(0)
            with nvtaskset.Watcher(process.pid) as watcher:
                watcher.look(0.1)
                times = watcher.times(0)
                process.kill()
                process.communicate()
                with self.assertRaisesRegex(Error, f"^pid {process.pid}: has ended$"):
                    watcher.look(60)
                self.assertGreater(watcher.times(0).elapsed_ns, times.elapsed_ns)
                self.assertEqual(watcher.times(0)[1:], times[1:])
        self.assertEqual((times.span_ns, times.busy_ns, times.tpc_ns, times.error_ns), (0, None, None, None))
        self.assertEqual(kernels[:4], (None, None, None, None))
        self.assertEqual((times.gaps, kernels.gaps), (["counting is turned off (NVTASKSET_ACCOUNT)"],) * 2)

    def test_quota(self):
        self.assertIsNone(self.partition.quota)
        self.partition.quota = 0.03, 0.1
        quota = self.partition.quota
        self.assertEqual(quota[:2], (0.03, 0.1))
        self.assertEqual((type(quota.state), quota.bounded), (str, 0))
        for wrong in ((0.0001, 0.1), (1, 100), (-1, 1)):
            with self.assertRaises(Error, msg=wrong):
                self.partition.quota = wrong
        self.assertEqual(self.partition.quota[:2], (0.03, 0.1))
        self.partition.quota = None
        self.assertEqual(self.partition.quota.run, self.partition.quota.period)

    def test_wrong_types(self):
        """Whatever an argument is, the failure is an Error."""
        for wrong in (1, "x", (1,), (1, "x"), (float("nan"), 1), (float("inf"), 1), (1e400, 1), [None, None], 1.5, object()):
            self.fails(ErrorCode.INVALID, setattr, self.partition, "quota", wrong)
        for wrong in (None, 1, 1.5, [], object(), "/nowhere/\ud800", "/nowhere/a\0b", b"/nowhere/a"):
            for use in (nvtaskset.Group, nvtaskset.Group.make):
                with self.assertRaises(Error, msg=(use, wrong)):
                    use(wrong)
        with tempfile.TemporaryDirectory() as directory:
            with nvtaskset.Group.make(os.path.join(directory, "group")) as group:
                for wrong in (None, 1, "x", [0], [(0, 1)], {0: None}, {None: 1}):
                    with self.assertRaises(Error, msg=wrong):
                        group.claim(wrong)

    def test_same_names(self):
        """Each setting of the one table can be given to a process and to a group, by its name."""
        with open(SETTINGS, encoding="utf-8") as table:
            names = re.findall(r'X\([A-Z_]+, "([a-z_]+)"', table.read())
        self.assertGreater(len(names), 5)
        for name in names:
            for kind in (Partition, nvtaskset.Group):
                attribute = getattr(kind, {"memory": "memory_limit"}.get(name, name))
                self.assertTrue(attribute.fset and attribute.__doc__, (kind, name))

    def test_rank(self):
        self.assertEqual((self.partition.rank, self.partition.priority, self.partition.weight), (None, None, None))
        self.partition.priority = 0
        self.assertEqual((self.partition.priority, self.partition.weight), (0, None))
        self.partition.weight = 10000
        rank = self.partition.rank
        self.assertEqual((rank[:2], type(rank.state), rank.bounded), ((0, 10000), str, 0))
        for attribute, wrong in (("priority", 100), ("priority", None), ("weight", 0)):
            self.fails(ErrorCode.INVALID, setattr, self.partition, attribute, wrong)
        self.assertEqual(self.partition.rank[:2], (0, 10000))
        for attribute, wrong in (("lend", "x"), ("lend", 0.00001), ("lend", 2), ("borrow", "x"), ("borrow", ""), ("borrow", "0-3")):
            error = self.fails(ErrorCode.INVALID, setattr, self.partition, attribute, wrong)
        self.assertRegex(str(error), "TPCs are lent under MPS only")
        self.assertEqual((self.partition.lend, self.partition.borrow, self.partition.borrowed), (None, None, Set()))

    def test_client_of_mps(self):
        directory = os.path.join(os.environ["XDG_RUNTIME_DIR"], "mps-of-a-client")
        os.mkdir(directory)
        with open(os.path.join(directory, "control"), "w"):
            pass
        in_reach = ("env", "CUDA_MPS_PIPE_DIRECTORY=" + directory, "where", "60")
        with program(*in_reach) as process, Partition(process.pid) as partition:
            partition.quota = 0.03, 0.1
            partition.priority = 20
            self.assertEqual((partition.quota[:2], partition.priority, partition.quota.held), ((0.03, 0.1), 20, 0))
            with self.assertRaisesRegex(Error, "clients of MPS take no turns that could be shared"):
                partition.weight = 200
            self.assertIsNone(partition.weight)
            partition.lend = 0.004
            partition.borrow = "8-15"
            self.assertEqual((partition.lend, partition.borrow, partition.borrowed), (0.004, Set("8-15"), Set()))
            partition.lend = partition.borrow = None
            self.assertEqual((partition.lend, partition.borrow), (None, None))

    def test_list(self):
        found = [partition for partition in nvtaskset.partitions() if partition.pid == PID]
        self.assertEqual(len(found), 1)
        self.assertEqual(found[0][0], self.partition[0])

    def test_more_than_fit(self):
        many = os.path.join(os.environ["BUILD"], "tests", "programs", "hostile")
        with subprocess.Popen([many, "many", "200", "0"], stdout=subprocess.PIPE) as process:
            for _ in range(200):
                process.stdout.readline()
            self.assertGreater(len(nvtaskset.partitions()), 200)
            process.kill()

    def test_end_of_the_process(self):
        with program() as process, Partition(process.pid) as partition:
            self.assertEqual(select.select([partition], [], [], 0)[0], [])
            partition.check()
            process.kill()
            process.communicate()
            self.assertEqual(select.select([partition], [], [], 60)[0], [partition])
            with self.assertRaisesRegex(Error, f"^pid {process.pid}: has ended$"):
                partition.check()

    def test_threads_share_one(self):
        failures = []

        def change(tpc):
            try:
                for _ in range(300):
                    self.partition[0] = [tpc]
            except Error as error:
                failures.append(error)

        threads = [threading.Thread(target=change, args=(tpc,)) for tpc in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(len(self.partition[0]), 1)

    def test_one_thread_at_a_time(self):
        """Handles of the library are for one thread, and a Partition is for several."""
        inside, within, second = [], threading.Event(), threading.Thread(target=self.partition.check)

        def call(function, *arguments):
            inside.append(function)
            if len(inside) == 1:
                second.start()
                within.wait(0.3)
            else:
                within.set()
            return result(function, *arguments)

        result = nvtaskset._try
        with unittest.mock.patch.object(nvtaskset, "_try", call):
            self.partition.check()
            self.assertFalse(within.is_set())
            second.join()
        self.assertEqual(len(inside), 2)


class Codes(Case):
    def test_no_partition(self):
        load = "ctypes.CDLL(os.environ['NVTASKSET_DRIVER'])"
        for code, does, environment in (
                (ErrorCode.NO_CUDA, "pass", {}),
                (ErrorCode.NO_PARTITION, load, {}),
                (ErrorCode.NOT_IN_FORCE, load, {"NVTASKSET_PARTITION": ""})):
            with self.subTest(code), outside(does, **environment) as pid:
                self.fails(code, Partition, pid)
        self.fails(ErrorCode.ENDED, Partition, pid)

    def test_another_program(self):
        first = "import ctypes, os; ctypes.CDLL('libcuda.so.1').cuInit(0); print(flush=True); input(); " \
                "os.execvp('where', ['where', '60'])"
        with program(sys.executable, "-c", first) as process, Partition(process.pid) as partition:
            partition.check()
            process.stdin.write(b"\n")
            process.stdin.flush()
            process.stdout.readline()
            partition.check()
            partition[0] = "5"
            self.assertEqual(partition[0], Set("5"))
            process.kill()
            process.communicate()
            self.fails(ErrorCode.ENDED, partition.check)
            self.fails(ErrorCode.ENDED, partition.__setitem__, 0, {4})
            self.fails(ErrorCode.ENDED, setattr, partition, "priority", 30)

    def test_limits(self):
        Partition(PID).close()
        with limit(resource.RLIMIT_NOFILE):
            error = self.fails(ErrorCode.SYSTEM, Partition, PID)
            self.assertEqual(self.fails(ErrorCode.SYSTEM, nvtaskset.partitions).errno, errno.EMFILE)
        self.assertEqual(error.errno, errno.EMFILE)
        with limit(resource.RLIMIT_AS):
            error = self.fails(ErrorCode.NO_MEMORY, Partition, PID)
        self.assertEqual(error.errno, errno.ENOMEM)

    def test_error_is_a_value(self):
        error = self.fails(ErrorCode.INVALID, Set, "x")
        self.assertEqual(str(error), "'x': a number was expected")
        self.assertIsNone(error.errno)
        for same in (copy.copy(error), pickle.loads(pickle.dumps(error))):
            self.assertEqual((str(same), same.code, same.errno), (str(error), error.code, error.errno))
        self.assertIs(Error("of a later library", 99).code, ErrorCode.OTHER)


class Groups(Case):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def test_claims(self):
        with Group.make(self.path("a"), "/jobs/a") as a, Group.make(self.path("b")) as b:
            self.assertEqual(a.name, "a")
            a.claim({0: 20})
            b.claim({0: 40}, "packed")
            self.assertEqual((len(a[0]), len(b[0]), len(a[0] & b[0])), (20, 40, 0))
            before = a[0]
            a.claim({nvtaskset.gpus()[0]: 20})
            self.assertEqual(a[0], before)
            self.fails(ErrorCode.NO_ROOM, Group.make(self.path("c")).claim, {0: 7})
            Group.remove(self.path("a"))
            Group.make(self.path("c")).claim({0: 26})
        with self.assertRaises(Error):
            a[0]

    def test_change(self):
        with Group.of(PID) as group:
            group[0] = "12-15"
            with Partition(PID) as partition:
                self.assertEqual(partition[0], Set("12-15"))
                partition[0] = "13"
                self.assertEqual((partition[0], group[0]), (Set("13"), Set("12-15")))
                group[0] = "0-7"
                self.assertEqual(partition[0], Set("0-7"))

    def test_time(self):
        with Group.make(self.path("timed")) as group:
            self.assertEqual((group.priority, group.weight, group.quota, group.rank), (None, None, None, None))
            group.priority = 80
            group.weight = 200
            group.quota = 0.03, 0.1
            group.lend, group.borrow = 0.002, "0-7"
            self.assertEqual((group.lend, group.borrow), (0.002, Set("0-7")))
            self.assertEqual((group.priority, group.weight, group.quota[:2]), (80, 200, (0.03, 0.1)))
            self.assertEqual((group.rank.in_force, group.quota.present), (False, 0))
            group.quota = None
            self.assertEqual(group.quota.run, group.quota.period)

    def test_mistakes(self):
        for wrong in (lambda: Group(self.path("none")), lambda: Group.make(self.path("12")), lambda: Group.of(0),
                      lambda: Group.of(os.getpid()), lambda: Group.make(self.path("x")).claim({0: 8}, "best")):
            with self.assertRaises(Error):
                wrong()


class Leaks(Case):
    """What was made and closed, or was refused, leaves neither memory nor files."""

    def use_all(self, times, directory, member):
        for number in range(times):
            nvtaskset.partitions()
            with Partition(PID) as partition, Group.of(PID), nvtaskset.Watcher(PID) as watcher:
                partition[0] = {number % 66}
                watcher.look()
            Group.of(member).close()
            path = os.path.join(directory, "group")
            Group.make(path).close()
            Group(path).close()
            Group.remove(path)
            for wrong in (lambda: Partition(1 << 30), lambda: Group(path), lambda: Group.of(os.getpid())):
                self.assertRaises(Error, wrong)
            self.fails(ErrorCode.DAMAGED, Group, self.damaged(directory))

    def damaged(self, directory):
        path = os.path.join(directory, "damaged")
        if not os.path.exists(path):
            Group.make(path).close()
            with open(path, "r+b") as group:
                group.write(bytes(64))
        return path

    def has(self):
        with open("/proc/self/status", encoding="utf-8") as status:
            data = next(int(line.split()[1]) for line in status if line.startswith("VmData:"))
        return data, len(os.listdir("/proc/self/fd"))

    def test_500_times(self):
        with tempfile.TemporaryDirectory() as directory, Group.make(os.path.join(directory, "of-member")) as group:
            group[0] = "1"
            with program(NVTASKSET_GROUP_FILE=os.path.join(directory, "of-member")) as member:
                self.use_all(100, directory, member.pid)
                data, files = self.has()
                self.use_all(400, directory, member.pid)
                data_after, files_after = self.has()
        self.assertEqual(files_after, files)
        self.assertLess(data_after, data + 1024)


class Library(unittest.TestCase):
    def test_not_found(self):
        program = "import nvtaskset\ntry:\n nvtaskset.gpus()\nexcept nvtaskset.Error as error:\n print(error)"
        for library in ("/nowhere/libnvtaskset.so.0", "libc.so.6"):
            environment = dict(os.environ, NVTASKSET_LIBRARY=library)
            printed = subprocess.check_output([sys.executable, "-c", program], env=environment, text=True)
            self.assertIn(library, printed)
            self.assertIn("NVTASKSET_LIBRARY can say where", printed)


if __name__ == "__main__":
    unittest.main()
