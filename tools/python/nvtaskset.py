"""Which TPCs of an NVIDIA GPU a process may use, read and changed while it runs.

    import nvtaskset

    for gpu in nvtaskset.gpus():
        print(gpu.name, gpu.tpcs)                  # NVIDIA H200 0-65
    for partition in nvtaskset.partitions():       # of every process that we may edit
        print(partition.pid, partition[0])
    with nvtaskset.Partition(1234) as partition:
        partition[0] = "0-7"                       # GPU 0; from the next launch on
        partition[0] |= nvtaskset.gpus()[0].gpcs[3]

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

__all__ = ["Counters", "Error", "ErrorCode", "Gpu", "Kernels", "Partition", "Set", "gpus", "partitions", "version"]

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


class _Kernels(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("launched", ctypes.c_uint64),
        ("ended", ctypes.c_uint64),
        ("in_flight", ctypes.c_uint64),
        ("unannounced", ctypes.c_uint64),
        ("gaps", ctypes.c_uint64),
        ("launched_is_known", ctypes.c_uint32),
        ("ended_is_known", ctypes.c_uint32),
    ]


_NUMBER, _HANDLE, _TEXT = ctypes.c_uint, ctypes.c_void_p, ctypes.c_char_p
_FUNCTIONS = {
    "version": (_TEXT,),
    "reason_text": (_TEXT, _NUMBER),
    "gap_text": (_TEXT, _NUMBER),
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
    "partition_kernels": (ctypes.c_int, _HANDLE, _NUMBER, ctypes.POINTER(_Kernels), ctypes.POINTER(_Error)),
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


# --- GPUs -------------------------------------------------------------------------------------------------------------


class Gpu:
    """A GPU of this machine, by number, bus id or UUID.

    Attributes: number, bus_id, name, uuid, compute (such as (9, 0)), sms_per_tpc; tpcs, a Set; gpcs and virtual_gpcs,
    dictionaries of a Set for each number. gpcs are those of the chip. A cluster of thread blocks always runs inside one
    virtual GPC: see nvtaskset(3).
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
        """Chooses `count` TPCs that are not in `used`: "packed" into whole GPCs, or "distributed" over all GPCs."""
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


class Partition:
    """The TPCs that a process may use. partition[gpu] is a Set for each GPU, and can be assigned.

    `gpu` is a number, a bus id, a UUID or a Gpu. A Partition has two file descriptors open until close(); `with` closes
    it. fileno() becomes readable when the process has ended, for use with select or asyncio.
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

    def kernels(self, gpu):
        """The kernels that the process has run on a GPU, as Kernels."""
        counts = _Kernels(size=ctypes.sizeof(_Kernels))
        self._use(_try, "kernels", _number(gpu), ctypes.byref(counts))
        texts = [_call("gap_text", number) for number in range(64) if counts.gaps >> number & 1]
        ended = (counts.ended, counts.in_flight, counts.unannounced)
        return Kernels(counts.launched if counts.launched_is_known else None,
                       *(ended if counts.ended_is_known else (None, None, None)),
                       [text.decode() for text in texts if text])

    def check(self):
        """Raises Error if the process has ended, has another partition now, or its partition is not in force."""
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
    """A Partition of each process that has one and that we may edit, sorted by pid."""
    found = []
    for pid in _pids():
        try:
            found.append(Partition(pid))
        except Error as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
                raise  # Otherwise the process has ended or has no partition any more.
    return found
