# A program with the Neuron runtime that does what it is told, a word per line on standard input, and says
# the word again when it is done.  Usage: program.py LIBNRT
import ctypes
import os
import signal
import sys

nrt = ctypes.CDLL(sys.argv[1])


def fork():
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # it ends with us
        signal.pause()
    return pid


def become_user():
    os.setgroups([])
    os.setresuid(65534, 65534, 65534)
    return ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # others of the user may look at us


words = {
    "user": become_user,
    "init": lambda: nrt.nrt_init(1, b"", b""),
    "close": lambda: nrt.nrt_close(),
    "forget": lambda: os.closerange(3, 1 << 16),
    "fork": fork,
    "exec": lambda: os.execv(sys.executable, [sys.executable] + sys.argv),
    "undumpable": lambda: ctypes.CDLL(None).prctl(4, 0, 0, 0, 0),
}
print("ready", flush=True)
for line in sys.stdin:
    print(line.strip(), words[line.strip()](), flush=True)
