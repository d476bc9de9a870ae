# Runs the tests that /job/list names, one after the other, in a guest.
# On descriptor 3, a line each: `begin NAME`, `result NAME pass|fail|skip SECONDS TEXT`.
# A test also fails when the kernel complains while it runs, or when it leaves the module loaded.
trouble=$(cat /job/trouble)
here=$$

seconds() { cut -d' ' -f1 /proc/uptime; }

stop_leftovers() { # whatever a test has started
	local p
	for p in $(cd /proc && echo [0-9]*); do
		[ "$p" = 1 ] || [ "$p" = $here ] || [ ! -s "/proc/$p/cmdline" ] || kill -9 "$p" 2>/dev/null
	done
	wait
}
# Hooks of a recorder that was killed go one after the other.
unload() {
	local tries=0
	while [ -e /sys/module/neuron ] && ! rmmod neuron 2>/tmp/rmmod; do
		[ $tries -lt 100 ] || { cat /tmp/rmmod; return; }
		tries=$((tries + 1))
		usleep 100000
	done
}

one() { # name, seconds
	local start log=/tmp/log said status text line left
	start=$(seconds)
	dmesg -c >/dev/null
	rm -rf /tmp/t && mkdir /tmp/t
	(
		cd /tmp/t && export T=/job/tests/$1 HOME=/tmp/t
		exec timeout -k 5 "$2" sh -u -c '. /vm/lib.sh; . "$T/run"' 3>&-
	) >$log 2>/tmp/stderr </dev/null
	status=$?
	cat $log /tmp/stderr
	line=$(grep '^RESULT ' $log | tail -1)
	said=$(echo "$line" | cut -d' ' -f2) text=$(echo "$line" | cut -d' ' -f3-)
	case $said in
	pass) [ $status = 0 ] || { said=fail text="status $status after: $text"; } ;;
	fail | skip) ;;
	*) said=fail text="no result, status $status$([ $status = 143 ] && echo ": more than $2 s")" ;;
	esac
	if [ "$said" = pass ] && [ -e "/job/tests/$1/expect" ]; then
		grep -v '^RESULT ' $log >/tmp/out
		diff "/job/tests/$1/expect" /tmp/out || { said=fail text="output differs (- expected, + got)"; }
	fi
	stop_leftovers
	left=$(unload)
	[ -z "$left" ] || { said=fail text="the module cannot be unloaded: $left; $text"; }
	left=$(dmesg -c | tee -a /dev/console | grep -E "$trouble" | head -1)
	[ -z "$left" ] || { said=fail text="the kernel says: $left; $text"; }
	echo "result $1 $said $(echo "$start $(seconds)" | awk '{ printf "%.1f", $2 - $1 }') $text" >&3
}

while read -r name limit; do
	echo "begin $name" >&3
	echo "vm: begin $name"
	one "$name" "$limit"
	echo "vm: end $name"
done </job/list
