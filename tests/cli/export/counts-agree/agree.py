"""Compares a Perfetto file with a plain count over `ntrace dump` of the same trace.

Usage: agree.py LEAF DECODED     LEAF: directory of the .pb files, DECODED: the file as `protoc --decode` prints it
Prints one line per thing that was compared.
"""
import collections
import json
import re
import subprocess
import sys

LINE = re.compile(r'\s*(?:([a-z_0-9]+)(?:: (.*)| \{)|\})$')


def parse(lines):
    """Messages as dicts of lists."""
    stack = [collections.defaultdict(list)]
    for line in lines:
        name, value = LINE.match(line).groups()
        if name is None:
            stack.pop()
        elif value is None:
            stack.append(collections.defaultdict(list))
            stack[-2][name].append(stack[-1])
        else:
            stack[-1][name].append(value.strip('"'))
    return stack[0]


def read(leaf, name):
    out = subprocess.run(['ntrace', 'dump', '%s/%s.pb' % (leaf, name)], capture_output=True, check=True)
    return [json.loads(line) for line in out.stdout.splitlines()]


def compare(what, shown, counted):
    same = shown == counted
    print('%s: %s' % (what, 'agree' if same and counted else 'nothing to compare' if same else
                      'differ: %s shown, %s counted' % (shown, counted)))


leaf, decoded = sys.argv[1:]
with open(decoded) as f:
    lines = f.read().splitlines()
print('fields that the subset does not know: %d' % sum(bool(re.match(r'\s*[0-9]+[: ]', line)) for line in lines))

names, tracks, clocks = {}, {}, {}
slices, instants, kinds = collections.Counter(), collections.Counter(), collections.Counter()
values = collections.defaultdict(list)
for p in parse(lines)['packet']:
    seq = p['trusted_packet_sequence_id'][0]
    for d in p['interned_data']:
        for n in d['event_names']:
            names[seq, n['iid'][0]] = n['name'][0]
    for s in p['clock_snapshot']:
        for c in s['clocks']:
            if c['clock_id'] == ['64']:
                clocks[seq] = int(c['timestamp'][0])
    for t in p['track_descriptor']:
        tracks[t['uuid'][0]] = t['name'][0] if t['name'] else ''
    for e in p['track_event']:
        time = int(p['timestamp'][0]) + clocks.get(seq, 0)
        if seq in clocks:
            clocks[seq] = time
        kind = e['type'][0]
        kinds[kind] += 1
        kinds['flow end'] += len(e['terminating_flow_ids'])
        name = names[seq, e['name_iid'][0]] if e['name_iid'] else ''
        if kind == 'TYPE_SLICE_BEGIN':
            slices[name] += 1
        elif kind == 'TYPE_INSTANT':
            instants[name] += 1
        elif kind == 'TYPE_COUNTER':
            value = e['counter_value'] or e['double_counter_value']
            values[tracks[e['track_uuid'][0]]].append((time, float(value[0])))

events = read(leaf, 'ntrace')
phase = {p: [e for e in events if e['phase'].endswith('_' + p)] for p in ('START', 'STOP', 'INSTANT')}
compare('slices of each name', slices, collections.Counter(e['name'] for e in phase['START']))
compare('ends of slices', kinds['TYPE_SLICE_END'], len(phase['STOP']))
counted = collections.Counter(e['name'] for e in phase['INSTANT'])
compare('instants of each name', {n: instants[n] for n in counted}, dict(counted))
compare('arrows', kinds['flow end'], sum('link.id' in e.get('attributes', {}) for e in events))
for direction in ('host_to_device', 'device_to_host'):
    copies = [e['attributes'] for e in phase['STOP'] if e.get('attributes', {}).get('direction') == direction]
    total = sum(int(a['bytes']) for a in copies if 'errno' not in a)
    rates = values['copies %s B/s' % direction]
    compare('bytes %s' % direction, int(values['copies %s bytes' % direction][-1][1]), total)
    compare('area below the rate', int(sum(v * (t1 - t0) / 1e9 for (t0, v), (t1, _) in zip(rates, rates[1:])) + .5),
            total)
compare('resident memory', [int(v) for _, v in values['resident memory']],
        [int(m['usage']) for m in read(leaf, 'host_mem')])
compare('CPU samples', sum(len(v) for n, v in values.items() if re.match('CPU [0-9]+ %', n)),
        len(read(leaf, 'cpu_util')))
