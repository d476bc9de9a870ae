# A plain count over `ntrace dump`, against `ntrace summary --json`.
# Usage: count.py SUMMARY DUMP...     one dump per process
import json, sys

summary = json.load(open(sys.argv[1]))
events = [json.loads(line) for path in sys.argv[2:] for line in open(path)]
def phase(e): return e["phase"].rsplit("_", 1)[1]
count, total, first, last = {}, {}, None, 0
copies = {}
for e in events:
    name = e["name"]
    if phase(e) == "STOP":
        count[name] = count.get(name, 0) + 1
        total[name] = total.get(name, 0) + e.get("duration", 0)
        a = e["attributes"] if "attributes" in e else {}
        if "direction" in a and "errno" not in a:
            c = copies.setdefault(a["direction"], [0, 0])
            c[0] += 1
            c[1] += int(a["bytes"])
first, last = min(e["timestamp"] for e in events), max(e["timestamp"] for e in events)

rows = {r["name"]: r for kind in ("calls", "device", "ioctls") for r in summary[kind]}
assert {n: r["n"] for n, r in rows.items() if r["n"]} == count
assert {n: r["total_ns"] for n, r in rows.items() if r["n"]} == total
assert summary["duration_ns"] == last - first
assert summary["events"]["total"] == len(events)
assert summary["events"]["instants"] == sum(phase(e) == "INSTANT" for e in events)
assert {c["direction"]: [c["n"], c["bytes"]] for c in summary["copies"]
        if c["source"] == "driver" and c["direction"] != "other"} == copies
runs = sum(c["runs"] for c in summary["cores"])
assert runs == count.get("nc_exec_running", 0) > 0
assert count and copies
print("the same", len(summary["processes"]), "process" + "es" * (len(sys.argv) > 3))
