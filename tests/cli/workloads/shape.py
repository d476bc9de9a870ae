# Counts the spans of a trace, and which lie in which.
# Usage: shape.py FILE          FILE: the JSON of nrt_sys_trace_fetch_events, or lines of `ntrace dump`
# Prints `name count` for the names of real-life traces, then `outer > inner count` for the innermost span around
# each on its thread.  Spans of a thread that do not end in the order of their starts are an error.
import json, sys
from collections import Counter

NAMES = """nrt_execute nrt_model_submit nc_exec_running kbl_exec_pre kbl_exec_wait kbl_exec_post nc_model_switch
cc_running cc_exec_barrier nrt_tensor_write nrt_tensor_read nrt_tensor_allocate nrt_tensor_free dmem_buf_copyin
dmem_buf_copyout nrt_dma_mem_alloc nrt_dma_mem_dealloc notification_consume_errors exec_consume_gpsimd_stdio
exec_consume_cc_core_notifications nrt_load nrt_load_collectives nrt_profile_add_node_info timestamp_sync_point nrta_seq_id""".split()
DEVICE = {"nc_exec_running", "nc_model_switch", "cc_running", "cc_exec_barrier"}
INNER = ["nrt_model_submit", "dmem_buf_copyin", "dmem_buf_copyout", "nrt_dma_mem_alloc",
         "nrt_dma_mem_dealloc", "kbl_exec_wait",
         "notification_consume_errors", "exec_consume_cc_core_notifications"]


def own_events(text):
    """Also counts sequence numbers, and which collectives lie in a run, by the clock of the device."""
    all_events = json.loads(text)["events"]
    start, runs, parts = {}, [], []
    for e in all_events:
        if e["event_type"] in DEVICE - {"nc_model_switch"}:
            if e["phase"] == "start":
                start[e["tracking_id"]] = e["data"]["nc_timestamp_ns"]
                continue
            span = e["event_type"], e["nc_idx"], start.pop(e["tracking_id"]), e["data"]["nc_timestamp_ns"]
            (runs if e["event_type"] == "nc_exec_running" else parts).append(span)
    assert not start, start
    sequence = {e["nrta_seq_id"] for e in all_events if e.get("nrta_seq_id")}
    for name, nc, first, last in parts:
        around = [r for r in runs if r[1] == nc and r[2] <= first <= last <= r[3]]
        inside["nc_exec_running" if around else "-", name] += 1
    count["nrta_seq_id"] = len(sequence)
    for e in all_events:
        yield e["event_type"], e["phase"], e["tracking_id"], e["thread_id"]


def events(path):
    text = open(path).read()
    if text.startswith('{"events"'):
        yield from own_events(text)
        return
    for line in text.splitlines():
        e = json.loads(line)
        if "event_type" in e:
            yield e["name"], e["phase"].rsplit("_", 1)[1].lower(), e["tracking_id"], e["thread_id"]


count, inside, stacks = Counter(), Counter(), {}
for name, phase, tracking, thread in events(sys.argv[1]):
    if phase in ("start", "instant"):
        count[name] += 1
    if name in DEVICE or phase == "instant":
        continue
    stack = stacks.setdefault(thread, [])
    if phase == "start":
        if name in INNER:
            inside[stack[-1][0] if stack else "-", name] += 1
        stack.append((name, tracking))
    else:
        assert stack and stack[-1] == (name, tracking), (name, tracking, stack)
        stack.pop()
assert not any(stacks.values()), stacks
for name in NAMES:
    if count[name]:
        print(name, count[name])
for (outer, inner), n in sorted(inside.items()):
    print(outer, ">", inner, n)
