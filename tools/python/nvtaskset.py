"""Which TPCs of an NVIDIA GPU a process may use, read and changed while it runs.

    import nvtaskset

    for gpu in nvtaskset.gpus():
        print(gpu.name, gpu.tpcs)                  # NVIDIA H200 0-65
    for partition in nvtaskset.partitions():       # of every process that we may change
        print(partition.pid, partition[0])
    with nvtaskset.Partition(1234) as partition:
        partition[0] = "0-7"                       # GPU 0; the next launch obeys
        partition[0] |= nvtaskset.gpus()[0].gpcs[3]

Numbers of TPCs and GPUs are nvtaskset(3)'s. Nothing is compiled: this is libnvtaskset.so.0 by way of ctypes, found at
NVTASKSET_LIBRARY, if that is set; where `make install` has put it, seen from here; or as any library is. Whatever
fails raises Error with the reason and a code, also a wrong argument of whatever type: ErrorCode.INVALID. TypeError is
for what Python itself refuses: too many arguments, or an operator between a Set and no set. Numbers are what Python
takes for an index. Several threads may use one Partition; a fork opens its own.
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

__all__ = ["Counters", "Error", "ErrorCode", "Gpu", "Partition", "Set", "gpus", "partitions", "version"]

_TPCS_MAX = 256
_NUMBER_MAX = (1 << 32) - 1
_STRATEGIES = {"packed": 0, "distributed": 1}


class ErrorCode(enum.IntEnum):
    """What failed: nvtaskset(3) says what each means. The numbers stay."""

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
        """A later library's."""
        return cls.OTHER


class Error(Exception):
    """What failed, and why: str() is the reason, code an ErrorCode, errno the kernel's where it was that which refused,
    else None."""

    def __init__(self, reason, code=ErrorCode.OTHER, errno=None):
        super().__init__(reason)
        self.code = ErrorCode(code)
        self.errno = errno


def _invalid(what, value, why):
    return Error(f"{what} {reprlib.repr(value)}: {why}", ErrorCode.INVALID)


def _integer(what, value, first, last, why):
    """An argument that is a number of `first` to `last`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = first - 1
    if not first <= number <= last:
        raise _invalid(what, value, why)
    return number


# --- the library ------------------------------------------------------------------------------------------------------


class _Error(ctypes.Structure):
    _fields_ = [("reason", ctypes.c_char * 312), ("code", ctypes.c_int), ("system_error", ctypes.c_int)]


class _Set(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint64 * (_TPCS_MAX // 64))]


class _Gpu(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("bus_id", ctypes.c_char * 32),
        ("name", ctypes.c_char * 64),
        ("uuid", ctypes.c_char * 48),
        ("compute_major", ctypes.c_uint),
        ("compute_minor", ctypes.c_uint),
        ("tpc_count", ctypes.c_uint),
        ("sms_per_tpc", ctypes.c_uint),
        ("gpc_limit", ctypes.c_uint),
    ]


class _Counters(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("restricted", ctypes.c_uint64),
        ("unrestricted", ctypes.c_uint64),
        ("refreshed", ctypes.c_uint64),
        ("reasons", ctypes.c_uint64 * 16),
    ]


_NUMBER, _HANDLE, _TEXT = ctypes.c_uint, ctypes.c_void_p, ctypes.c_char_p
_FUNCTIONS = {
    "version": (_TEXT,),
    "reason_text": (_TEXT, _NUMBER),
    "set_parse_list": (ctypes.c_int, ctypes.POINTER(_Set), _TEXT, _NUMBER, ctypes.POINTER(_Error)),
    "set_parse_mask": (ctypes.c_int, ctypes.POINTER(_Set), _TEXT, _NUMBER, ctypes.POINTER(_Error)),
    "set_format_list": (_TEXT, ctypes.POINTER(_Set), _TEXT),
    "set_format_mask": (_TEXT, ctypes.POINTER(_Set), _TEXT),
    "topology_load": (ctypes.c_int, ctypes.POINTER(_HANDLE), ctypes.POINTER(_Error)),
    "topology_gpu_count": (_NUMBER, _HANDLE),
    "topology_find_gpu": (ctypes.c_int, _HANDLE, _TEXT, ctypes.POINTER(_NUMBER), ctypes.POINTER(_Error)),
    "gpu_describe": (ctypes.c_int, _HANDLE, _NUMBER, ctypes.POINTER(_Gpu), ctypes.POINTER(_Error)),
    "gpu_gpc_of": (ctypes.c_int, _HANDLE, _NUMBER, _NUMBER),
    "gpu_virtual_gpc_of": (ctypes.c_int, _HANDLE, _NUMBER, _NUMBER),
    "gpu_choose": (
        ctypes.c_int, _HANDLE, _NUMBER, ctypes.POINTER(_Set), _NUMBER, ctypes.c_int, ctypes.POINTER(_Set),
        ctypes.POINTER(_Error),
    ),
    "processes": (
        ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t),
        ctypes.POINTER(_Error),
    ),
    "partition_open": (ctypes.c_int, ctypes.POINTER(_HANDLE), _HANDLE, ctypes.c_int, ctypes.POINTER(_Error)),
    "partition_close": (None, _HANDLE),
    "partition_get": (ctypes.c_int, _HANDLE, _NUMBER, ctypes.POINTER(_Set), ctypes.POINTER(_Error)),
    "partition_set": (ctypes.c_int, _HANDLE, _NUMBER, ctypes.POINTER(_Set), ctypes.POINTER(_Error)),
    "partition_check": (ctypes.c_int, _HANDLE, ctypes.POINTER(_Error)),
    "partition_descriptor": (ctypes.c_int, _HANDLE),
    "partition_counters": (ctypes.c_int, _HANDLE, ctypes.POINTER(_Counters), ctypes.POINTER(_Error)),
}


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
    """Calls a function that can fail: its last argument is the reason."""
    error = _Error()
    if _call(name, *arguments, ctypes.byref(error)) < 0:
        raise Error(error.reason.decode(errors="replace"), error.code, error.system_error or None)


@functools.lru_cache(maxsize=None)
def _topology():
    handle = _HANDLE()
    _try("topology_load", ctypes.byref(handle))
    return handle


def version():
    """Of the library."""
    return _call("version").decode()


# --- sets -------------------------------------------------------------------------------------------------------------


class Set(frozenset):
    """TPC numbers. Made from any iterable of them, or from text: a list ("0-7,9"), or "0x" and a hexadecimal mask.

    The arguments of its methods may be either, too; operators want sets on both sides.
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
    # Bytes are numbers to Python, but not those that stand there.
    if not isinstance(tpcs, (bytes, bytearray, memoryview)):
        try:
            return iter(tpcs)
        except TypeError:
            pass
    raise _invalid("TPCs", tpcs, "neither text nor numbers")


def _tpc(number):
    return _integer("TPC", number, 0, _TPCS_MAX - 1, f"not a number of 0-{_TPCS_MAX - 1}")


def _of_sets(name, convert):
    """frozenset's operation, where a set that comes out is a Set; what goes in is as `convert` makes it."""
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
    """No NUL hides what stands behind it, and what is no character is seen as such."""
    return text.replace("\0", "?").encode(errors="backslashreplace")


# --- GPUs -------------------------------------------------------------------------------------------------------------


class Gpu:
    """A GPU of this machine, by number, bus id or UUID.

    GPCs are the chip's, virtual ones hold a cluster of thread blocks each: nvtaskset(3).

    number, bus_id, name, uuid, compute (9, 0), sms_per_tpc; tpcs, a Set; gpcs and virtual_gpcs, a Set for each number.
    """

    def __init__(self, number):
        self.number = _number(number)
        gpu = _Gpu(size=ctypes.sizeof(_Gpu))
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

    def choose(self, count, used=(), strategy="packed"):
        """So many TPCs, none of them used; "packed" into whole GPCs, or "distributed" over them."""
        if not isinstance(strategy, str) or strategy not in _STRATEGIES:
            raise _invalid("strategy", strategy, "it is packed or distributed")
        count = _integer("count", count, 0, _NUMBER_MAX, "not a number of TPCs")
        chosen = _Set()
        _try("gpu_choose", _topology(), self.number, ctypes.byref(Set(used)._words()), count, _STRATEGIES[strategy],
             ctypes.byref(chosen))
        return Set(chosen)

    def __repr__(self):
        return f"<Gpu {self.number}, {self.name}, {self.bus_id}>"


def gpus():
    """The GPUs of this machine, by PCI address, whatever CUDA_VISIBLE_DEVICES says."""
    return [Gpu(number) for number in range(_call("topology_gpu_count", _topology()))]


def _number(gpu):
    if isinstance(gpu, Gpu):
        return gpu.number
    if isinstance(gpu, str):
        number = _NUMBER()
        _try("topology_find_gpu", _topology(), _bytes(gpu), ctypes.byref(number))
        return number.value
    return _integer("GPU", gpu, 0, _NUMBER_MAX, "it is a number, a bus id, a UUID or a Gpu")


# --- processes --------------------------------------------------------------------------------------------------------


Counters = collections.namedtuple("Counters", "restricted unrestricted refreshed reasons")
Counters.__doc__ = """Kernels that were kept inside the partition; that ran as they came; nodes of CUDA graphs that were
uploaded again after a change; and a dictionary: how often a launch was not simply run inside the partition, and why.

A kernel in a CUDA graph counts when it is uploaded, and not at each launch of the graph."""


class Partition:
    """The TPCs that a process may use: partition[gpu] is a Set for each GPU, to be read and assigned.

    `gpu` is a number, a bus id, a UUID or a Gpu. Has two descriptors until it is closed; `with` closes it. fileno() is
    readable when the process has ended: for select, asyncio and the like.
    """

    def __init__(self, pid):
        self.pid = _integer("pid", pid, 1, (1 << 31) - 1, "not a process id")
        self._lock = threading.Lock()
        self._handle = None
        handle = _HANDLE()
        _try("partition_open", ctypes.byref(handle), _topology(), self.pid)
        self._handle = handle

    def _use(self, function, *arguments):
        with self._lock:
            if self._handle is None:
                raise _invalid("pid", self.pid, "the partition was closed here")
            return function("partition_" + arguments[0], self._handle, *arguments[1:])

    def __getitem__(self, gpu):
        words = _Set()
        self._use(_try, "get", _number(gpu), ctypes.byref(words))
        return Set(words)

    def __setitem__(self, gpu, tpcs):
        self._use(_try, "set", _number(gpu), ctypes.byref(Set(tpcs)._words()))

    @property
    def counters(self):
        counters = _Counters(size=ctypes.sizeof(_Counters))
        self._use(_try, "counters", ctypes.byref(counters))
        texts = ((_call("reason_text", number), count) for number, count in enumerate(counters.reasons))
        reasons = {text.decode(): count for text, count in texts if text}
        return Counters(counters.restricted, counters.unrestricted, counters.refreshed, reasons)

    def check(self):
        """Raises Error where the process has ended, has another partition by now, or does not obey."""
        self._use(_try, "check")

    def fileno(self):
        number = self._use(_call, "descriptor")
        if number < 0:
            raise Error("the kernel has no descriptors of processes: Linux 5.3 has", ErrorCode.SYSTEM, errno.ENOSYS)
        return number

    def close(self):
        with self._lock:
            if self._handle is not None:
                _call("partition_close", self._handle)
                self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None) is not None:
            self.close()

    def __repr__(self):
        return f"<Partition of {self.pid}>"


def _pids():
    room, count = 0, ctypes.c_size_t(64)
    while count.value > room:
        room = count.value + 64
        pids = (ctypes.c_int * room)()
        _try("processes", pids, room, ctypes.byref(count))
    return list(pids[: count.value])


def partitions():
    """Of every process that has one and that we may change, by pid."""
    found = []
    for pid in _pids():
        try:
            found.append(Partition(pid))
        except Error as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
                raise  # Else it has ended meanwhile.
    return found
