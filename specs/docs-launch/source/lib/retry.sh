# Commands that fail now and then.

# retry ATTEMPTS DELAY COMMAND [ARGUMENT...]
#
# Runs COMMAND until it succeeds, at most ATTEMPTS times. After the first failure it waits DELAY seconds, after each
# further one twice as long as before, but never longer than KEEP_MAX_DELAY seconds.
# Exit status: 0 COMMAND succeeded; 2 ATTEMPTS is not a whole number of at least 1; else that of the last attempt.
# Environment: KEEP_MAX_DELAY the longest wait in seconds, 60 by default.
retry() {
	_retry_most=$1 _retry_delay=$2
	shift 2
	case $_retry_most in
	'' | *[!0-9]* | 0) return 2 ;;
	esac
	_retry_n=1
	while :; do
		"$@" && return 0
		_retry_status=$?
		if [ "$_retry_n" -ge "$_retry_most" ]; then
			return "$_retry_status"
		fi
		log warn "attempt $_retry_n of $_retry_most failed with status $_retry_status; again in ${_retry_delay}s"
		sleep "$_retry_delay"
		_retry_n=$((_retry_n + 1))
		_retry_delay=$((_retry_delay * 2))
		if [ "$_retry_delay" -gt "${KEEP_MAX_DELAY:-60}" ]; then
			_retry_delay=${KEEP_MAX_DELAY:-60}
		fi
	done
}
