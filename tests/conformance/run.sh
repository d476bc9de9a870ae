#!/bin/bash
# docs/conformance.md names the tests that prove it: each must exist, must have run in this run of the
# suites, and must have passed.  One that was skipped for want of a thing that the machine or the user does not
# have (check.awk lists them) is counted; with CI set it fails as well.  A row has a test or a deviation.  First
# the check itself is tried on broken copies of the document.
# Usage: BUILD=build bash tests/conformance/run.sh      after the suites unit and cli, through tests/run.sh
cd "$(dirname "$0")/../.." || exit 3
BUILD=${BUILD:-build}
ran=${NTRACE_TEST_RAN:-$BUILD/tests/ran}
passed=0 failed=0 skipped=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

check() { # file of tests, document, 1 = nothing may be missing
	touch "$1"
	awk -v ran="$1" -v strict="${3:-0}" -f tests/conformance/check.awk "$1" "$2"
}

# A document that is in order, and what each change to it must bring up.
printf 'passed\ta: one\nskipped\tb: two\troot, for a device\npassed\tcli: x/y\n' >"$tmp/ran"
cat >"$tmp/good.md" <<'END'
# Title
## Part
| what the contract says | test | deviation and why |
|---|---|---|
| first \| half | `a: one`, `cli: x/y` | |
| second | `b: two` | |
| third | | not here, because |
END
cases() { # name, sed script for the document, sed script for the tests, what is said
	cat <<-'END'
	nothing wrong@@@skipped 1, faults 0
	skipped for nothing@@s/\troot.*//@for want of what is not the machine's: b: two ()
	skipped for want of a build@@s/root/rooted/@not the machine's: b: two (rooted, for a device)
	unknown test@s/a: one/a: other/@@no such test, or it did not run: a: other
	not run@@/one/d@no such test, or it did not run: a: one
	failed@@s/passed\ta/failed\ta/@this test failed: a: one
	failed once@@1ifailed\ta: one@this test failed: a: one
	cli case not run@@/cli/d@did not run: cli: x/y
	neither@s/not here, because//@@neither a test nor a deviation: third
	words@s/`b: two`/see b/@@words outside of backticks: see b
	odd@s/`b: two`/`b: two/@@odd number of backticks
	columns@s/ half/ half | more/@@a row of 4 columns
	says nothing@s/third//@@a row that says nothing
	empty section@$a## Rest@@a section without a row: Rest
	no table@/^|/d@@no table
	nobody ran@@d@no test ran before
	END
}
while IFS=@ read -r name document tests want; do
	sed "$document" "$tmp/good.md" >"$tmp/bad.md"
	sed "$tests" "$tmp/ran" >"$tmp/bad.ran"
	got=$(check "$tmp/bad.ran" "$tmp/bad.md")
	if [[ $got == *"$want"* ]]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "failed: conformance: the check does not see '$name': $got"
	fi
done < <(cases)
got=$(check "$tmp/ran" "$tmp/good.md" 1)
if [[ $got == *"here nothing may be missing: b: two (root, for a device)"*"faults 1" ]]; then
	passed=$((passed + 1))
else
	failed=$((failed + 1))
	echo "failed: conformance: with CI a skipped test is no fault: $got"
fi

report=$(check "$ran" docs/conformance.md "${CI:+1}")
echo "$report"
last=${report##*$'\n'}
skipped=$(sed -n 's/.*, skipped \([0-9]*\), .*/\1/p' <<<"$last")
if [[ $last == "rows "*", faults 0" ]]; then
	passed=$((passed + 1))
else
	failed=$((failed + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
