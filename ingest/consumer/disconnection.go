package consumer

import (
	"errors"
	"io"
	"net"
	"os"

	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/segmentio/kafka-go"
)

// disconnection is the reason for the end of a connection to a partition. It is the label `reason` of the metric.
type disconnection string

const (
	lostDial       disconnection = "dial"                // failed to connect
	lostNotLeader  disconnection = "not_leader"          // another broker is the leader now
	lostOutOfRange disconnection = "offset_out_of_range" // the next offset is before the start or after the end of the log
	lostConnection disconnection = "connection"          // the connection broke
	lostTimeout    disconnection = "timeout"             // no response in time
	lostPanic      disconnection = "panic"               // kafka-go panicked, for example on a damaged record batch
	lostStalled    disconnection = "stalled"             // the watchdog cut the connection
	lostBroker     disconnection = "broker_error"        // the broker returned another error
	lostMalformed  disconnection = "malformed"           // a response could not be parsed
	lostPrepare    disconnection = "schema"              // closed because the schema of a record is currently unavailable
)

func disconnections() []disconnection {
	return []disconnection{
		lostDial, lostNotLeader, lostOutOfRange, lostConnection, lostTimeout, lostPanic, lostStalled, lostBroker, lostMalformed,
		lostPrepare,
	}
}

var errDial = errors.New("failed to connect")

func disconnectionOf(err error) disconnection {
	var broker kafka.Error
	var network net.Error
	switch {
	case errors.Is(err, errPrepare): // checked first, because network errors may be the cause
		return lostPrepare
	case errors.Is(err, errDial):
		return lostDial
	case errors.Is(err, fetch.ErrPanicked):
		return lostPanic
	case errors.Is(err, kafka.OffsetOutOfRange):
		return lostOutOfRange
	case errors.Is(err, kafka.NotLeaderForPartition), errors.Is(err, kafka.LeaderNotAvailable), errors.Is(err, kafka.FencedLeaderEpoch):
		return lostNotLeader
	case errors.As(err, &broker):
		return lostBroker
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return lostTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.As(err, &network):
		return lostConnection
	}
	return lostMalformed
}
