"""Parts of tests/hardware/pools.sh.

    pools.py paused NAME            runs bench/untuned/program.py; signals pause it: SIGUSR1, until SIGUSR2
    pools.py device FILE NAME       commands that do what a runtime does with a device, but for the hook
    pools.py apart PID…             whether no two processes share a namespace of processes, mounts or IPC; says users'
    pools.py rate LOG LINE          iterations in a second, from a line of a log on
    pools.py answers FILE…          how long answers took, by file
    pools.py within FILE FILE LEAST MOST    whether the median ratio of two columns is in the bounds, in percent
    pools.py shown PID PID ID ID    whether the host's views soon show what the first program borrows from the second,
                                    and their containers; the lender rests now and then
"""
import json
import os
import random
import re
import runpy
import shlex
import signal
import statistics
import subprocess
import sys
import time


def paused(name):
    """The program's clock stands still while it is paused. Questions of `service` come at equal distances."""
    clock, sleep, lost = time.monotonic, time.sleep, 0

    def rest(seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            sleep(left)

    def pause(*_):
        nonlocal lost
        began = clock()
        signal.sigwait({signal.SIGUSR2})
        lost += clock() - began

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    signal.signal(signal.SIGUSR1, pause)
    time.monotonic = lambda: clock() - lost
    time.sleep = rest
    random.expovariate = lambda rate: 0.6
    sys.argv = ["program.py", name]
    runpy.run_path(os.path.join(os.path.dirname(__file__), "../../bench/untuned/program.py"), run_name="__main__")


def device(file, name):
    with open(file) as specification:
        devices = json.load(specification)["devices"]
    edits, = (device["containerEdits"] for device in devices if device["name"] == name)
    for kind, directory in ("proc", "/proc"), ("tmpfs", "/opt/nvtaskset"), ("tmpfs", "/etc/ld.so.conf.d"):
        print(f"mount -t {kind} none {directory} || exit")
    print(f"ln -s {edits['hooks'][0]['args'][2]}/libcuda.so.1 /etc/ld.so.conf.d/00-000-nvtaskset.driver")
    for mount in edits["mounts"]:
        print(f"to={mount['containerPath']} from={mount['hostPath']}; mkdir -p $to")
        print("[ -d $from ] || { rmdir $to; : >$to; }")
        print(f"mount --bind -o {mount['options'][1]} $from $to || exit")
    print("export", *map(shlex.quote, edits["env"]))
    front = "/opt/nvtaskset/front"
    print(f"export LD_LIBRARY_PATH={front}:{front}/driver${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}")


def apart(*pids):
    shared = {kind: len({os.readlink(f"/proc/{pid}/ns/{kind}") for pid in pids}) < len(pids)
              for kind in ("pid", "mnt", "ipc", "user")}
    print(f"a namespace of users is {'shared' if shared.pop('user') else 'not shared'}")
    sys.exit(any(shared.values()))


def rate(log, line):
    with open(log) as lines:
        ends = [float(text.split()[0]) for text in lines.read().splitlines()[int(line):]]
    print((len(ends) - 1) / (ends[-1] - ends[0]))


def answers(*files):
    for file in files:
        with open(file) as lines:
            lengths = sorted(1e3 * float(line.split()[1]) for line in lines if " " in line)
        if lengths:
            print(f"{os.path.basename(file)}: n = {len(lengths)}, median {statistics.median(lengths):.2f} ms, "
                  f"mean {statistics.mean(lengths):.2f} ms, longest {lengths[-1]:.2f} ms")


def within(first, second, least, most):
    with open(first) as a, open(second) as b:
        pairs = [(float(x), float(y)) for x, y in zip(a, b)]
    ratio = statistics.median(100 * x / y for x, y in pairs)
    print(f"{ratio:.1f} %:", ", ".join(f"{x:.2f} to {y:.2f}" for x, y in pairs), "a second")
    sys.exit(not float(least) <= ratio <= float(most))


def shown(train, chat, train_id="", chat_id=""):
    train_id, chat_id = train_id[:12], chat_id[:12]
    for command, pattern in (
            ("-l", rf" *{train} .*{train_id}.*borrows TPCs 33-65 now"),
            ("-l", rf" *{chat} .*{chat_id}.*others use TPCs 33-65 now"),
            ("top --once --delay 0.5", rf" *{train} .*borrows 33 .*{train_id}"),
            ("top --once --delay 0.5", rf" *{chat} .*lends 33.*{chat_id}"),
            ("metrics", rf'nvtaskset_borrowed_tpc_seconds_total{{pid="{train}".*{train_id}.*lender="{chat}"}}')):
        for _ in range(30):
            page = subprocess.check_output(["nvtaskset", *command.split()], text=True)
            if re.search("^" + pattern, re.sub(r"\n\s{8}", " ", page), re.M):
                break
            time.sleep(0.1)
        else:
            sys.exit(f"{pattern} is not in\n{page}")


PARTS = {part.__name__: part for part in (paused, device, apart, rate, answers, within, shown)}
PARTS[sys.argv[1]](*sys.argv[2:])
