# One process at a time.

# lock_take FOLDER
#
# Makes FOLDER the sign that this process holds the lock, and writes the process id into it. The lock of a process
# that is gone is taken over.
# Exit status: 0 the lock is held; 1 another process holds it.
lock_take() {
	if mkdir "$1" 2>/dev/null; then
		echo $$ >"$1/pid"
		return 0
	fi
	_lock_pid=$(cat "$1/pid" 2>/dev/null) || return 1
	if kill -0 "$_lock_pid" 2>/dev/null; then
		return 1
	fi
	log warn "process $_lock_pid, which held $1, is gone; its lock is taken over"
	echo $$ >"$1/pid"
}

# lock_give FOLDER
#
# Gives the lock up.
# Exit status: 0 done, also when there was no lock.
lock_give() {
	rm -rf "$1"
}

# with_lock FOLDER COMMAND [ARGUMENT...]
#
# Runs COMMAND while this process holds the lock, and gives it up afterwards, whatever the outcome.
# Exit status: that of COMMAND; 75 another process holds the lock, and COMMAND did not run.
with_lock() {
	_lock_folder=$1
	shift
	lock_take "$_lock_folder" || return 75
	_lock_status=0
	"$@" || _lock_status=$?
	lock_give "$_lock_folder"
	return "$_lock_status"
}
