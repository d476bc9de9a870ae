#!/bin/bash
# Tests of the tests: what run.sh says of tests that fail in each way, the last of them by a panic of the kernel.
# Usage: BUILD=build tests/vm/harness.sh     ends with `N passed, N failed, N skipped`
cd "$(dirname "$0")/../.." || exit 3
. tests/vm/guest.sh
lacks=$(vm_missing | tr '\n' ' ')
if [ -n "$lacks" ]; then
	echo "skipped: vm: harness (missing: ${lacks% })"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi
out=$(mktemp)
trap 'rm -f "$out"' EXIT
VM_DIR=tests/vm/harness VM_KERNELS=6.1 VM_TEST_SIZE='' VM_STRICT='' NEURON_KO='' NTRACE_TEST_RAN='' bash tests/vm/run.sh >"$out"
if grep -E '^(denied|failed|skipped): |^[0-9]+ passed' "$out" | sed -E 's/\[ *[0-9.]+\] //g' | LC_ALL=C sort |
	diff <(LC_ALL=C sort tests/vm/harness/expected) -; then
	echo "1 passed, 0 failed, 0 skipped"
else
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
fi
