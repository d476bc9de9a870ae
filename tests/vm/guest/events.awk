# From the lines of `ntrace dump ntrace.pb`: the driver's events as tests/vm/programs/expect.h writes them, a line each,
# in the order in which they begin, behind the number of their thread; pid is given:
#	thread kind name device engine queue seq bytes handle tx rx result file pid
# A device that is not known is `?`.  Records of a file are in order of time: the first that is not is a line of its own.
function value(line, name,   at, rest) {
	at = index(line, "\"" name "\":")
	if (!at)
		return "-"
	rest = substr(line, at + length(name) + 3)
	sub(/^"/, "", rest)
	sub(/[",}].*/, "", rest)
	return rest
}
function number(line, name,   v) {
	v = value(line, name)
	return substr(v, 1, 2) == "0x" ? "-" : v
}
function columns(line, prefix) {
	return value(line, prefix "engine") " " value(line, prefix "queue")
}
{
	time = value($0, "timestamp")
	if (length(time) < length(last) || (length(time) == length(last) && time "" < last "") ) {
		if (!disorder)
			disorder = time " after " last
	}
	last = time
	phase = value($0, "phase")
	sub(/.*_/, "", phase)
	hint = value($0, "hint")
	if (hint == "-" || hint == "clock_step" || hint == "suspend")
		next
	id = value($0, "id")
	if (phase == "START" || phase == "INSTANT")
		order[n++] = id
	if (phase == "START")
		next
	kind = "ioctl"
	name = hint
	sub(/^ioctl_/, "", name)
	if (sub(/^dma_/, "", name))
		kind = "dma"
	else if (sub(/^driver_/, "", name))
		kind = "module"
	else if (name ~ /^(open|flush|release|mmap)$/)
		kind = "file"
	device = value($0, "nd_idx")
	if (value($0, "dma.device") == "unknown")
		device = "?"
	else if (device == "-")
		device = 0
	if (kind == "dma")
		rest = columns($0, "dma.") " " value($0, "dma.seq") " " value($0, "dma.bytes") " - " \
			value($0, "dma.tx") " " value($0, "dma.rx")
	else
		rest = columns($0, "") " - " value($0, "bytes") " " value($0, "handle") " - -"
	text[id] = value($0, "thread_id") " " kind " " name " " device " " rest " " \
		value($0, "result") " " value($0, "file") " " pid
}
END {
	if (disorder)
		print "? disorder " disorder
	for (i = 0; i < n; i++)
		print order[i] in text ? text[order[i]] : "? open " order[i]
}
