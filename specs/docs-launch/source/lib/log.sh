# Messages on standard error, with a level.

# log_level LEVEL
#
# Shows messages of LEVEL and above from now on: debug, info, warn or error. What is not one of these leaves the
# level as it was.
# Exit status: 0 done; 2 LEVEL is not a level.
log_level() {
	case $1 in
	debug) _log_least=0 ;;
	info) _log_least=1 ;;
	warn) _log_least=2 ;;
	error) _log_least=3 ;;
	*) return 2 ;;
	esac
}

# log LEVEL TEXT...
#
# Prints "LEVEL: TEXT" on standard error when LEVEL is shown. Without log_level, info and above are.
# Exit status: 0 always, so that a message never ends a script that runs under set -e.
log() {
	_log_as=$1
	shift
	case $_log_as in
	debug) _log_is=0 ;;
	info) _log_is=1 ;;
	warn) _log_is=2 ;;
	*) _log_is=3 ;;
	esac
	if [ "$_log_is" -ge "${_log_least:-1}" ]; then
		printf '%s: %s\n' "$_log_as" "$*" >&2
	fi
	return 0
}
