#!/bin/sh
# A learner on a spot (preemptible) machine: its cloud is asked every few seconds
# whether the machine is to go. If so dl-learn gets SIGTERM, delivers its last
# work within its --drain, and ends; so it does when this script gets SIGTERM.
#
#	examples/spot.sh aws|gce|URL dl-learn --drain 60s ...
#
# Whatever URL answers, unless it is an error or FALSE, is a notice. POLL (5) are
# the seconds between two looks; Amazon tells two minutes before, Google half a
# minute. The machine that replaces this one runs the same command, with the
# same key or the same name: the syncer lets it in as soon as this one is gone or
# silent. Where the machine that comes back has the disk of this one, dl-learn's
# --state FOLDER on it lets the trainer go on with its moments. 75 is the answer
# when not all of the last work could be delivered. Machines of one image share
# a key that has max=N in authorized_learners: then each gets a number, and its
# data, from the syncer.
set -eu

[ $# -ge 2 ] || {
	echo 'usage: spot.sh aws|gce|URL command ...' >&2
	exit 64
}
cloud=$1
shift

get() { # curl's arguments
	curl -sf -m 2 "$@"
}

aws=http://169.254.169.254/latest
gce=http://metadata.google.internal/computeMetadata/v1/instance/preempted

ask() {
	case $cloud in
	aws)
		token=$(get -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' \
			$aws/api/token) &&
			get -H "X-aws-ec2-metadata-token: $token" \
				$aws/meta-data/spot/instance-action
		;;
	gce) get -H 'Metadata-Flavor: Google' $gce ;;
	*) get "$cloud" ;;
	esac
}

is_to_go() {
	answer=$(ask) && [ "$answer" != FALSE ]
}

"$@" &
learner=$!
trap 'kill -TERM $learner 2>/dev/null || :' TERM INT

lives() {
	kill -0 $learner 2>/dev/null
}

# A shell hears of signals between commands: the looks are short.
while lives && ! is_to_go; do
	sleep "${POLL:-5}" &
	wait $! || :
done
if lives; then
	echo 'spot.sh: this machine is to go' >&2
	kill -TERM $learner
fi
code=0
wait $learner || code=$?
while lives; do # wait was interrupted
	code=0
	wait $learner || code=$?
done
exit $code
