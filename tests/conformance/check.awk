# Judges docs/conformance.md by the tests that ran.  Input: the file of NTRACE_TEST_RAN, then the document.
# Prints a line per fault; at the end `rows N, tests N, skipped N, faults N`.
# A test may be skipped when what is missing is a thing of the machine or a right of the user; with strict=1
# not even then.
function fault(text) {
	print "failed: conformance: line " FNR ": " text
	faults++
}
function trim(s) {
	gsub(/^[ \t]+|[ \t]+$/, "", s)
	return s
}
# The cells of a row of a table; a \| belongs to the text.
function cells(line, to,   i, n) {
	gsub(/\\\|/, "\001", line)
	sub(/^[ \t]*\|/, "", line)
	sub(/\|[ \t]*$/, "", line)
	n = split(line, to, "|")
	for (i = 1; i <= n; i++) {
		gsub(/\001/, "|", to[i])
		to[i] = trim(to[i])
	}
	return n
}
function is_of_the_machine(what) {
	return what ~ /^(root|\/dev\/fuse|kernel BTF|setpriv|pid namespaces|nm|readelf|cc|c\+\+)($|, | \()/
}
function judge_skipped(name) {
	skipped++
	if (strict)
		fault("this test was skipped, and here nothing may be missing: " name " (" missing[name] ")")
	else if (!is_of_the_machine(missing[name]))
		fault("this test was skipped for want of what is not the machine's: " name " (" missing[name] ")")
}
function judge_tests(cell,   n, parts, j, rest) {
	n = split(cell, parts, "`")
	if (n && n % 2 == 0)
		return fault("an odd number of backticks in the column of tests")
	for (j = 1; j <= n; j += 2) {
		rest = trim(parts[j])
		if (rest !~ /^[,;]?$/)
			fault("the column of tests has words outside of backticks: " rest)
	}
	for (j = 2; j <= n; j += 2) {
		tests++
		if (!(parts[j] in outcome))
			fault("no such test, or it did not run: " parts[j])
		else if (outcome[parts[j]] == "skipped")
			judge_skipped(parts[j])
		else if (outcome[parts[j]] != "passed")
			fault("this test " outcome[parts[j]] ": " parts[j])
	}
}
FNR == NR && FILENAME == ran {
	split($0, field, "\t")
	# A test of several runs counts by its worst one.
	if (outcome[field[2]] != "failed" && !(field[1] == "skipped" && outcome[field[2]] == "passed"))
		outcome[field[2]] = field[1]
	if (field[1] == "skipped")
		missing[field[2]] = field[3]
	known++
	next
}
/^[ \t]*\|/ {
	n = cells($0, cell)
	if (cell[1] ~ /^[-: ]+$/)
		next
	if (cell[1] ~ /^what the [a-z]+ [a-z]+$/) {
		if (n != 3 || cell[2] != "test" || cell[3] != "deviation and why")
			fault("a table with other columns")
		tables++
		next
	}
	rows++
	if (n != 3)
		fault("a row of " n " columns; a | in the text is written \\|")
	else if (cell[1] == "")
		fault("a row that says nothing")
	else if (cell[2] == "" && cell[3] == "")
		fault("neither a test nor a deviation: " cell[1])
	else
		judge_tests(cell[2])
	next
}
/^## / {
	if (section != "" && rows == rows_before)
		fault("a section without a row: " section)
	section = substr($0, 4)
	rows_before = rows
}
END {
	if (section != "" && rows == rows_before)
		fault("a section without a row: " section)
	if (!known)
		fault("no test ran before")
	if (!tables)
		fault("no table")
	printf "rows %d, tests %d, skipped %d, faults %d\n", rows, tests, skipped, faults
}
