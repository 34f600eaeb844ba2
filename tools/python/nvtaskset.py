"""Which TPCs of an NVIDIA GPU a process may use, read and changed while it runs.

    import nvtaskset

    for gpu in nvtaskset.gpus():
        print(gpu.name, gpu.tpcs)                  # NVIDIA H200 0-65
    for partition in nvtaskset.partitions():       # of every process that we may edit
        print(partition.pid, partition[0])
    with nvtaskset.Partition(1234) as partition:
        partition[0] = "0-7"                       # GPU 0; from the next launch on
        partition[0] |= nvtaskset.gpus()[0].gpcs[3]
    with nvtaskset.Watcher(1234) as watcher:
        watcher.look(1)                            # for a second
        times = watcher.times(0)
        print(times.busy_ns / times.span_ns)
    with nvtaskset.Group.make("/var/lib/jobs/job-7") as group:
        group.claim({0: 8})                        # 8 TPCs of GPU 0 that no other job in this directory has

TPCs and GPUs have the numbers of nvtaskset(3). This module calls libnvtaskset.so.0 through ctypes, so nothing is
compiled. It loads the library from NVTASKSET_LIBRARY if that is set, else from where `make install` has put it
relative to this file, else from where the dynamic linker finds it.

All failures raise Error with the reason and a code. A wrong argument, of any type, has ErrorCode.INVALID. Python itself
raises TypeError for too many arguments, and for an operator between a Set and something that is no set. A number may
be anything that Python takes as an index. Several threads may use one Partition. After a fork, the child must open its
own.
"""

import collections
import ctypes
import enum
import errno
import functools
import operator
import os
import reprlib
import threading
import time

__all__ = ["Counters", "Error", "ErrorCode", "Function", "Gpu", "Group", "Kernels", "Memory", "Partition", "Quota",
           "Rank", "Set", "Times", "Watcher", "gpus", "partitions", "version"]

_TPCS_MAX = 256
_NUMBER_MAX = (1 << 32) - 1
_STRATEGIES = {"packed": 0, "distributed": 1}


class ErrorCode(enum.IntEnum):
    """The kind of failure; nvtaskset(3) describes each. The numbers do not change between versions."""

    OTHER = 0
    INVALID = 1
    ENDED = 2
    STALE = 3
    NOT_PERMITTED = 4
    NO_CUDA = 5
    NO_PARTITION = 6
    NOT_IN_FORCE = 7
    OUT_OF_REACH = 8
    NOT_KNOWN = 9
    DAMAGED = 10
    BUSY = 11
    NO_ROOM = 12
    NO_MEMORY = 13
    SYSTEM = 14
    SHARED = 15

    @classmethod
    def _missing_(cls, value):
        """A code of a later version of the library."""
        return cls.OTHER


class Error(Exception):
    """A failure. str() is the reason, code is an ErrorCode, errno is the kernel's error number or None."""

    def __init__(self, reason, code=ErrorCode.OTHER, errno=None):
        super().__init__(reason)
        self.code = ErrorCode(code)
        self.errno = errno


def _invalid(what, value, why):
    return Error(f"{what} {reprlib.repr(value)}: {why}", ErrorCode.INVALID)


def _integer(what, value, first, last, why):
    """Returns an argument that must be a number from `first` to `last`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = first - 1
    if not first <= number <= last:
        raise _invalid(what, value, why)
    return number


# --- the library ------------------------------------------------------------------------------------------------------


_NUMBER, _HANDLE, _TEXT, _SIZE = ctypes.c_uint, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
_U32, _U64 = ctypes.c_uint32, ctypes.c_uint64


def _structure(name, *types_and_members):
    """A structure of nvtaskset.h: types, each before the names of the members that have it."""
    fields = []
    for kind, members in zip(types_and_members[::2], types_and_members[1::2]):
        fields += [(member, kind) for member in members.split()]
    return type(name, (ctypes.Structure,), {"_fields_": fields})


def _sized(structure):
    """An empty structure that begins with its size."""
    return structure(size=ctypes.sizeof(structure))


_TIME_USE = (_U32, "in_force state", _U64, "present_us aside_us bounded held")
_Error = _structure("_Error", ctypes.c_char * 312, "reason", ctypes.c_int, "code system_error")
_Set = _structure("_Set", _U64 * (_TPCS_MAX // 64), "words")
_Gpu = _structure("_Gpu", _SIZE, "size", ctypes.c_char * 32, "bus_id", ctypes.c_char * 64, "name", ctypes.c_char * 48, "uuid",
                  _NUMBER, "compute_major compute_minor tpc_count sms_per_tpc gpc_limit")
_Counters = _structure("_Counters", _SIZE, "size", _U64, "restricted unrestricted refreshed", _U64 * 16, "reasons")
_Kernels = _structure("_Kernels", _SIZE, "size", _U64, "launched ended in_flight unannounced gaps",
                      _U32, "launched_is_known ended_is_known")
_Times = _structure("_Times", _SIZE, "size", _U64, "elapsed_ns span_ns busy_ns tpc_ns error_ns timed lost gaps",
                    _U32, "is_known is_presence")
_Function = _structure("_Function", _SIZE, "size", _TEXT, "name",
                       _U64, "instances timed total_ns average_ns median_ns min_ns max_ns deviation_ns")
_Claim = _structure("_Claim", _NUMBER, "gpu count")
_Quota = _structure("_Quota", _SIZE, "size", _U32, "run_us period_us", *_TIME_USE)
_Rank = _structure("_Rank", _SIZE, "size", ctypes.c_int32, "priority", _U32, "weight", *_TIME_USE)
_Lending = _structure("_Lending", _SIZE, "size", _U32, "lend_us borrows", _Set, "borrow borrowed",
                      _U64, "borrowed_tpc_us overruns", _U32, "in_force state")

_Memory = _structure("_Memory", _SIZE, "size", _U64, "limit used together")

# Result and parameters of the functions. A function that can fail has no result here, and a pointer to an error as its last
# parameter, which is left out.
_TO = ctypes.POINTER
_FUNCTIONS = {
    "version": (_TEXT,),
    "reason_text": (_TEXT, _NUMBER),
    "gap_text": (_TEXT, _NUMBER),
    "time_gap_text": (_TEXT, _NUMBER),
    "quota_text": (_TEXT, _U32),
    "set_format_list": (_TEXT, _TO(_Set), _TEXT),
    "set_format_mask": (_TEXT, _TO(_Set), _TEXT),
    "topology_gpu_count": (_NUMBER, _HANDLE),
    "gpu_gpc_of": (ctypes.c_int, _HANDLE, _NUMBER, _NUMBER),
    "gpu_virtual_gpc_of": (ctypes.c_int, _HANDLE, _NUMBER, _NUMBER),
    "group_close": (None, _HANDLE),
    "group_name": (_TEXT, _HANDLE, _TEXT),
    "partition_close": (None, _HANDLE),
    "partition_descriptor": (ctypes.c_int, _HANDLE),
    "watcher_close": (None, _HANDLE),
    "watcher_function_count": (_NUMBER, _HANDLE),
}
_FALLIBLE = {
    "set_parse_list": (_TO(_Set), _TEXT, _NUMBER),
    "set_parse_mask": (_TO(_Set), _TEXT, _NUMBER),
    "topology_load": (_TO(_HANDLE),),
    "topology_find_gpu": (_HANDLE, _TEXT, _TO(_NUMBER)),
    "gpu_describe": (_HANDLE, _NUMBER, _TO(_Gpu)),
    "gpu_choose": (_HANDLE, _NUMBER, _TO(_Set), _NUMBER, ctypes.c_int, _TO(_Set)),
    "group_make": (_TO(_HANDLE), _HANDLE, _TEXT, _TEXT),
    "group_open": (_TO(_HANDLE), _HANDLE, _TEXT),
    "group_of": (_TO(_HANDLE), _HANDLE, ctypes.c_int),
    "group_remove": (_TEXT,),
    "group_claim": (_HANDLE, _TO(_Claim), _SIZE, ctypes.c_int),
    "processes": (_TO(ctypes.c_int), _SIZE, _TO(_SIZE)),
    "partition_open": (_TO(_HANDLE), _HANDLE, ctypes.c_int),
    "partition_check": (_HANDLE,),
    "partition_counters": (_HANDLE, _TO(_Counters)),
    "partition_kernels": (_HANDLE, _NUMBER, _TO(_Kernels)),
    "watcher_open": (_TO(_HANDLE), _HANDLE, ctypes.c_int),
    "watcher_look": (_HANDLE, _NUMBER),
    "watcher_times": (_HANDLE, _NUMBER, _TO(_Times)),
    "watcher_function": (_HANDLE, _NUMBER, _TO(_Function)),
}
for _kind in ("partition_", "group_"):
    for _name, _parameters in {
        "get": (_NUMBER, _TO(_Set)), "set": (_NUMBER, _TO(_Set)), "quota": (_TO(_Quota),), "rank": (_TO(_Rank),),
        "lending": (_TO(_Lending),), "memory": (_NUMBER, _TO(_Memory)),
        "set_quota": (_U32, _U32), "set_priority": (_NUMBER,), "set_weight": (_NUMBER,),
        "set_lend": (_U32,), "set_borrow": (_TO(_Set),), "set_memory": (_U64,),
    }.items():
        _FALLIBLE[_kind + _name] = (_HANDLE, *_parameters)
_FUNCTIONS.update({_name: (ctypes.c_int, *_parameters, _TO(_Error)) for _name, _parameters in _FALLIBLE.items()})


def _candidates():
    chosen = os.environ.get("NVTASKSET_LIBRARY")
    if chosen:
        return [chosen]
    here = os.path.dirname(os.path.abspath(__file__))
    installed = os.path.normpath(os.path.join(here, "../../../lib/libnvtaskset.so.0"))
    return ([installed] if os.path.exists(installed) else []) + ["libnvtaskset.so.0"]


@functools.lru_cache(maxsize=None)
def _library():
    try:
        library = ctypes.CDLL(_candidates()[0])
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(library, "nvtaskset_" + name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise Error(f"{error}: NVTASKSET_LIBRARY can say where libnvtaskset.so.0 is") from None
    return library


def _call(name, *arguments):
    return getattr(_library(), "nvtaskset_" + name)(*arguments)


def _try(name, *arguments):
    """Calls a function that can fail. Such functions have a pointer to an error as their last parameter."""
    error = _Error()
    if _call(name, *arguments, ctypes.byref(error)) < 0:
        raise Error(error.reason.decode(errors="replace"), error.code, error.system_error or None)


@functools.lru_cache(maxsize=None)
def _topology():
    handle = _HANDLE()
    _try("topology_load", ctypes.byref(handle))
    return handle


def version():
    """The version of the library."""
    return _call("version").decode()


# --- sets -------------------------------------------------------------------------------------------------------------


class Set(frozenset):
    """A set of TPC numbers. It is made from an iterable of numbers or from text: a list ("0-7,9"), or a hexadecimal
    mask after "0x".

    Arguments of its methods may be either. Operators need sets on both sides.
    """

    __slots__ = ()

    def __new__(cls, tpcs=()):
        if isinstance(tpcs, str):
            tpcs = _parse(tpcs)
        if isinstance(tpcs, _Set):
            tpcs = [tpc for tpc in range(_TPCS_MAX) if tpcs.words[tpc // 64] >> tpc % 64 & 1]
        return super().__new__(cls, map(_tpc, _members(tpcs)))

    @property
    def mask(self):
        """The hexadecimal mask."""
        return self._format("set_format_mask")

    def __str__(self):
        return self._format("set_format_list")

    def __repr__(self):
        return f"Set({str(self)!r})"

    def _format(self, function):
        text = ctypes.create_string_buffer(1024)
        return _call(function, ctypes.byref(self._words()), text).decode()

    def _words(self):
        words = _Set()
        for tpc in self:
            words.words[tpc // 64] |= 1 << tpc % 64
        return words


def _members(tpcs):
    # Python iterates over bytes as numbers: b"0-7" would be TPCs 48, 45 and 55.
    if not isinstance(tpcs, (bytes, bytearray, memoryview)):
        try:
            return iter(tpcs)
        except TypeError:
            pass
    raise _invalid("TPCs", tpcs, "neither text nor numbers")


def _tpc(number):
    return _integer("TPC", number, 0, _TPCS_MAX - 1, f"not a number of 0-{_TPCS_MAX - 1}")


def _of_sets(name, convert):
    """Wraps an operation of frozenset: `convert` converts its arguments, and a resulting set becomes a Set."""
    operation = getattr(frozenset, name)

    @functools.wraps(operation)
    def wrapped(self, *others):
        result = operation(self, *map(convert, others))
        return Set(result) if isinstance(result, frozenset) else result

    return wrapped


for _name in ("and", "or", "sub", "xor", "rand", "ror", "rsub", "rxor"):
    setattr(Set, f"__{_name}__", _of_sets(f"__{_name}__", lambda other: other))
for _name in ("intersection", "union", "difference", "symmetric_difference", "isdisjoint", "issubset", "issuperset"):
    setattr(Set, _name, _of_sets(_name, Set))


def _parse(text):
    words = _Set()
    if text == "":
        return words
    is_mask = text[:2] in ("0x", "0X")
    _try("set_parse_mask" if is_mask else "set_parse_list", ctypes.byref(words), _bytes(text), _TPCS_MAX)
    return words


def _bytes(text):
    """Encodes text for C. A NUL becomes "?", since it would end the text. Surrogates, which UTF-8 does not have, are
    escaped."""
    return text.replace("\0", "?").encode(errors="backslashreplace")


def _path(path):
    """Encodes a path for C, as Python's own functions do."""
    try:
        return os.fsencode(path).replace(b"\0", b"?")
    except (TypeError, UnicodeError) as error:
        raise _invalid("path", path, "not a path") from error


# --- GPUs -------------------------------------------------------------------------------------------------------------


class Gpu:
    """A GPU of this machine, by number, bus id or UUID.

    Attributes: number, bus_id, name, uuid, compute (such as (9, 0)), sms_per_tpc; tpcs, a Set; gpcs and virtual_gpcs,
    dictionaries of a Set for each number. gpcs are those of the chip. A cluster of thread blocks always runs inside one
    virtual GPC: see nvtaskset(3).
    """

    def __init__(self, number):
        self.number = _number(number)
        gpu = _sized(_Gpu)
        _try("gpu_describe", _topology(), self.number, ctypes.byref(gpu))
        self.bus_id, self.name, self.uuid = (text.decode() for text in (gpu.bus_id, gpu.name, gpu.uuid))
        self.compute = (gpu.compute_major, gpu.compute_minor)
        self.sms_per_tpc = gpu.sms_per_tpc
        self.tpcs = Set(range(gpu.tpc_count))
        self.gpcs = self._group("gpu_gpc_of")
        self.virtual_gpcs = self._group("gpu_virtual_gpc_of")

    def _group(self, function):
        groups = collections.defaultdict(list)
        for tpc in self.tpcs:
            groups[_call(function, _topology(), self.number, tpc)].append(tpc)
        return {number: Set(groups[number]) for number in sorted(groups) if number >= 0}

    def choose(self, count, used=(), strategy="distributed"):
        """Chooses `count` TPCs that are not in `used`: "packed" into whole GPCs, or "distributed" over many,
        in chunks that a cluster of 8 blocks fits into."""
        strategy = _strategy(strategy)
        count = _integer("count", count, 0, _NUMBER_MAX, "not a number of TPCs")
        chosen = _Set()
        _try("gpu_choose", _topology(), self.number, ctypes.byref(Set(used)._words()), count, strategy,
             ctypes.byref(chosen))
        return Set(chosen)

    def __repr__(self):
        return f"<Gpu {self.number}, {self.name}, {self.bus_id}>"


def gpus():
    """All GPUs of this machine, sorted by PCI address. CUDA_VISIBLE_DEVICES does not matter."""
    return [Gpu(number) for number in range(_call("topology_gpu_count", _topology()))]


def _number(gpu):
    if isinstance(gpu, Gpu):
        return gpu.number
    if isinstance(gpu, str):
        number = _NUMBER()
        _try("topology_find_gpu", _topology(), _bytes(gpu), ctypes.byref(number))
        return number.value
    return _integer("GPU", gpu, 0, _NUMBER_MAX, "it is a number, a bus id, a UUID or a Gpu")


def _strategy(strategy):
    if not isinstance(strategy, str) or strategy not in _STRATEGIES:
        raise _invalid("strategy", strategy, "it is packed or distributed")
    return _STRATEGIES[strategy]


# --- handles, and the time --------------------------------------------------------------------------------------------


Quota = collections.namedtuple("Quota", "run period in_force state present aside bounded held")
Quota.__doc__ = """run: the process may be present on its GPUs for so many seconds of each period on average, in the middle of
kernels; as many as the period has: no limit any more. state: what became of it, as text. present: for so long it wanted
to run and was not suspended. aside: for so long it wanted to run and was suspended. All in seconds. bounded: so often it was
resumed early, since work of its own was in flight on another GPU. held: 0. Of a client of MPS, whose launches are held back:
present: for so long its kernels were on the GPUs, an estimate; aside: for so long launches were held, held: how many; bounded: so
often a bound ended a hold."""


Rank = collections.namedtuple("Rank", "priority weight in_force state present aside bounded held")
Rank.__doc__ = """priority: 0 to 99, higher ones go first; None: never given, which counts as 50. weight: 1 to 10000, the proportion
in which those of the same priority share the time; None: never given, which counts as 100. The rest as in a Quota."""


Memory = collections.namedtuple("Memory", "limit used together")
Memory.__doc__ = """Bytes of one GPU. limit: at most so many; None: no limit. used: in use by the process; 0 for a
group. together: in use by all processes that share the limit."""


def _use_of(given):
    """What became of a quota or a rank."""
    state = _call("quota_text", given.state)
    return (bool(given.in_force), state.decode() if state else None, given.present_us / 1e6, given.aside_us / 1e6,
            given.bounded, given.held)


class _Handle:
    """A handle of the library, of this kind. `with` closes it."""

    _kind = None

    def _open(self, how, *arguments):
        self._lock = threading.Lock()
        self._handle = None
        handle = _HANDLE()
        _try(f"{self._kind}_{how}", ctypes.byref(handle), _topology(), *arguments)
        self._handle = handle
        return self

    def _use(self, function, name, *arguments):
        with self._lock:
            if self._handle is None:
                raise Error(f"the {self._kind} was closed here", ErrorCode.INVALID)
            return function(f"{self._kind}_{name}", self._handle, *arguments)

    def _read(self, structure, name, *arguments):
        """What a function fills."""
        filled = structure() if structure is _Set else _sized(structure)
        self._use(_try, name, *arguments, ctypes.byref(filled))
        return filled

    def close(self):
        with self._lock:
            if self._handle is not None:
                _call(self._kind + "_close", self._handle)
                self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None) is not None:
            self.close()


def _pid(pid):
    return _integer("pid", pid, 1, (1 << 31) - 1, "not a process id")


def _part_of_rank(name, about):
    def change(self, wanted):
        self._use(_try, "set_" + name, _integer(name, wanted, 0, _NUMBER_MAX, "not a " + name))

    return property(lambda self: self.rank and getattr(self.rank, name), change, doc=about)


class _Changeable(_Handle):
    """What a process or a group may use, and what it was given of the time. Of a group, only that is known, and not what became of
    it."""

    def __getitem__(self, gpu):
        return Set(self._read(_Set, "get", _number(gpu)))

    def __setitem__(self, gpu, tpcs):
        self._use(_try, "set", _number(gpu), ctypes.byref(Set(tpcs)._words()))

    @property
    def quota(self):
        """The Quota; None if there was never one. Assigned as (run, period), in seconds; None lifts it."""
        quota = self._read(_Quota, "quota")
        if quota.period_us == 0:
            return None
        return Quota(quota.run_us / 1e6, quota.period_us / 1e6, *_use_of(quota))

    @quota.setter
    def quota(self, wanted):
        try:
            run, period = (1, 1) if wanted is None else wanted[:2]
            times = [round(time * 1e6) for time in (run, period)]
        except (TypeError, ValueError, OverflowError) as error:
            raise _invalid("quota", wanted, "it is (run, period), in seconds, or None") from error
        self._use(_try, "set_quota", *(_integer("quota", time, 0, _NUMBER_MAX, "in seconds") for time in times))

    @property
    def rank(self):
        """Priority and weight, as a Rank; None if there was never one of them."""
        rank = self._read(_Rank, "rank")
        if rank.priority < 0 and rank.weight == 0:
            return None
        return Rank(rank.priority if rank.priority >= 0 else None, rank.weight or None, *_use_of(rank))

    priority = _part_of_rank("priority", "0 to 99, higher ones go first; None: never given. The default is 50.")
    weight = _part_of_rank("weight", "1 to 10000; None: never given. The default is 100.")

    @property
    def lend(self):
        """A client of MPS lends its TPCs while it is idle: for how many seconds a launch may then wait for them; None:
        it lends nothing. Can be assigned."""
        return self._read(_Lending, "lending").lend_us / 1e6 or None

    @lend.setter
    def lend(self, wanted):
        try:
            limit = 0 if wanted is None else round(wanted * 1e6)
        except (TypeError, ValueError, OverflowError) as error:
            raise _invalid("lend", wanted, "it is in seconds, or None") from error
        self._use(_try, "set_lend", _integer("lend", limit, 0, _NUMBER_MAX, "in seconds"))

    @property
    def borrow(self):
        """The Set of TPCs that a client of MPS may use while others lend them; None: it borrows nothing. Can be
        assigned; an empty Set is an error."""
        lending = self._read(_Lending, "lending")
        return Set(lending.borrow) if lending.borrows else None

    @borrow.setter
    def borrow(self, wanted):
        self._use(_try, "set_borrow", None if wanted is None else ctypes.byref(Set(wanted)._words()))

    @property
    def borrowed(self):
        """The Set of TPCs of others that it uses now."""
        return Set(self._read(_Lending, "lending").borrowed)

    def memory(self, gpu=0):
        """What there is of this GPU, as a Memory."""
        memory = self._read(_Memory, "memory", _number(gpu))
        return Memory(memory.limit or None, memory.used, memory.together)

    @property
    def memory_limit(self):
        """So many bytes of each GPU at most, of a group all together; None: there is no limit. Can be assigned."""
        return self.memory().limit

    @memory_limit.setter
    def memory_limit(self, wanted):
        limit = 0 if wanted is None else _integer("memory_limit", wanted, 1, (1 << 63) - 1, "in bytes, or None")
        self._use(_try, "set_memory", limit)


# --- groups -----------------------------------------------------------------------------------------------------------


class Group(_Changeable):
    """The TPCs that a group of processes may use. group[gpu] is a Set for each GPU, and can be assigned: for all of them and
    those to come. nvtaskset(3) says what groups are. A Group has a file descriptor open until close(); `with` closes it.
    """

    _kind = "group"

    def __init__(self, path):
        """Opens the group of a file that is there."""
        self._open("open", _path(path))

    @classmethod
    def make(cls, path, cgroup=None):
        """Makes the file of a group, or opens the one that is there. `cgroup` is the job's control
        group, as in /proc/PID/cgroup: by it, a change reaches programs that have lost their environment."""
        return cls.__new__(cls)._open("make", _path(path), None if cgroup is None else _path(cgroup))

    @classmethod
    def of(cls, pid):
        """Opens the group that a process is in."""
        return cls.__new__(cls)._open("of", _pid(pid))

    @staticmethod
    def remove(path):
        """Removes the file of a group, which gives its TPCs back. One that is not there is no failure."""
        _try("group_remove", _path(path))

    @property
    def name(self):
        return self._use(_call, "name", ctypes.create_string_buffer(64)).decode()

    def claim(self, counts, strategy="distributed"):
        """Gives the group TPCs that no other group has that has a file in the same directory: so many on each GPU, such as
        {0: 8}. All or none; it can be repeated."""
        if not isinstance(counts, dict):
            raise _invalid("counts", counts, "it is a number of TPCs for each GPU, such as {0: 8}")
        claims = (_Claim * len(counts))(*(
            _Claim(_number(gpu), _integer("count", count, 0, _NUMBER_MAX, "not a number of TPCs"))
            for gpu, count in counts.items()
        ))
        self._use(_try, "claim", claims, len(claims), _strategy(strategy))


# --- processes --------------------------------------------------------------------------------------------------------


Counters = collections.namedtuple("Counters", "restricted unrestricted refreshed reasons")
Counters.__doc__ = """restricted: launches that were restricted to the partition. unrestricted: launches that were not.
refreshed: nodes of CUDA graphs that were uploaded again after a change. reasons: why launches were not simply run
inside the partition, and how often; a dictionary.

A kernel in a CUDA graph counts when it is uploaded, and not at each launch of the graph."""


Kernels = collections.namedtuple("Kernels", "launched ended in_flight unannounced gaps")
Kernels.__doc__ = """launched: kernels that the process has launched on a GPU, those in CUDA graphs at each launch of the
graph. ended: how many of them have ended, as the GPU counts. in_flight: how many wait or run. unannounced: kernels of
graphs with conditional bodies and of graphs that kernels launch; they count in both when they end. gaps: why some are
not counted, a list. A number that is not known is None."""


def _gaps(function, bits):
    texts = [_call(function, number) for number in range(64) if bits >> number & 1]
    return [text.decode() for text in texts if text]


class _OfProcess(_Handle):
    def __init__(self, pid):
        self.pid = _pid(pid)
        self._open("open", self.pid)

    def __repr__(self):
        return f"<{type(self).__name__} of {self.pid}>"


class Partition(_OfProcess, _Changeable):
    """The TPCs that a process may use. partition[gpu] is a Set for each GPU, and can be assigned.

    `gpu` is a number, a bus id, a UUID or a Gpu. A Partition has two file descriptors open until close(); `with` closes
    it. fileno() becomes readable when the process has ended, for use with select or asyncio.
    """

    _kind = "partition"

    @property
    def counters(self):
        counters = self._read(_Counters, "counters")
        texts = ((_call("reason_text", number), count) for number, count in enumerate(counters.reasons))
        reasons = {text.decode(): count for text, count in texts if text}
        return Counters(counters.restricted, counters.unrestricted, counters.refreshed, reasons)

    def kernels(self, gpu):
        """The kernels that the process has run on a GPU, as Kernels."""
        counts = self._read(_Kernels, "kernels", _number(gpu))
        ended = (counts.ended, counts.in_flight, counts.unannounced)
        return Kernels(counts.launched if counts.launched_is_known else None,
                       *(ended if counts.ended_is_known else (None, None, None)),
                       _gaps("gap_text", counts.gaps))

    def check(self):
        """Raises Error if the process has ended, has another partition now, or its partition is not in force."""
        self._use(_try, "check")

    def fileno(self):
        number = self._use(_call, "descriptor")
        if number < 0:
            raise Error("the kernel has no descriptors of processes: Linux 5.3 has", ErrorCode.SYSTEM, errno.ENOSYS)
        return number


def _pids():
    room, count = 0, ctypes.c_size_t(64)
    while count.value > room:
        room = count.value + 64
        pids = (ctypes.c_int * room)()
        _try("processes", pids, room, ctypes.byref(count))
    return list(pids[: count.value])


def partitions():
    """A Partition of each process that has one and that we may edit, sorted by pid."""
    found = []
    for pid in _pids():
        try:
            found.append(Partition(pid))
        except Error as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
                raise  # Otherwise the process has ended or has no partition any more.
    return found


# --- times ------------------------------------------------------------------------------------------------------------


Times = collections.namedtuple("Times", "elapsed_ns span_ns busy_ns tpc_ns error_ns timed lost gaps is_presence")
Times.__doc__ = """How long a GPU was busy for a process, since the Watcher was made. elapsed_ns: how long that is.
span_ns: how much of it is known; busy_ns is of that. busy_ns: at least one kernel was on the GPU. tpc_ns: the same times the
TPCs that the kernels had. error_ns: by how much a begin may be wrong if the GPU was idle before. timed: kernels whose end was
seen.
lost: kernels whose time was lost, for want of looks. gaps: why times are not known, a list. is_presence: without MPS, times
contain the time slices of other processes, so the process was present rather than busy. A number that is not known is
None."""


Function = collections.namedtuple(
    "Function", "name instances timed total_ns average_ns median_ns min_ns max_ns deviation_ns")
Function.__doc__ = """The kernels of one function. name: mangled; None: the sum of all functions whose names found no room.
instances: kernels that have ended. timed: those of them that the following was made from. total_ns: the average, times the
instances. deviation_ns: standard deviation. A number that is not known is None."""

_UNKNOWN = (1 << 64) - 1
_LOOK_SECONDS = 0.05


def _known(number):
    return None if number == _UNKNOWN else number


class Watcher(_OfProcess):
    """Watches how long the GPUs are busy for a process, and with which kernels; see nvtaskset(3).

    The process pays for being watched, until close(); `with` closes it. Times and numbers of kernels are sums since the
    Watcher was made, and estimates; gaps and error_ns are of the last look.
    """

    _kind = "watcher"

    def look(self, seconds=0):
        """Looks now and, sleeping in between, as often as needed for so many seconds. Without looks at least every
        50 ms, times may be lost; without any for 1.5 s, they are not measured."""
        try:
            until = time.monotonic() + float(seconds)
        except (TypeError, ValueError, OverflowError):
            until = float("nan")
        if not until < float("inf"):
            raise _invalid("seconds", seconds, "not a number of seconds")
        left = self._look_until(until)
        while left > 0:
            time.sleep(min(left, _LOOK_SECONDS))
            left = self._look_until(until)

    def _look_until(self, until):
        self._use(_try, "look", 0)
        return until - time.monotonic()

    def times(self, gpu):
        """How long a GPU was busy for the process as of the last look, as Times."""
        times = self._read(_Times, "times", _number(gpu))
        return Times(times.elapsed_ns, times.span_ns, _known(times.busy_ns), _known(times.tpc_ns), _known(times.error_ns),
                     times.timed, times.lost, _gaps("time_gap_text", times.gaps), bool(times.is_presence))

    def functions(self):
        """The kernels by function, on all GPUs: a list of Function, in the order in which they were seen first."""
        return [self._function(number) for number in range(self._use(_call, "function_count"))]

    def _function(self, number):
        function = self._read(_Function, "function", number)
        name, *numbers = (getattr(function, member) for member in Function._fields)
        return Function(name.decode(errors="replace") if name is not None else None, *map(_known, numbers))
