package consumer

import (
	"errors"
	"io"
	"net"
	"os"

	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/segmentio/kafka-go"
)

// disconnection is the reason a connection to a partition ended. It is the label `reason` of the metric.
type disconnection string

const (
	lostDial       disconnection = "dial"                // no connection could be made
	lostNotLeader  disconnection = "not_leader"          // another broker is the leader now
	lostOutOfRange disconnection = "offset_out_of_range" // retention has passed the next offset, or the end is before it
	lostConnection disconnection = "connection"          // the connection broke
	lostTimeout    disconnection = "timeout"             // no answer in time
	lostPanic      disconnection = "panic"               // kafka-go panicked, as on a damaged record batch
	lostStalled    disconnection = "stalled"             // the watchdog cut the connection
	lostBroker     disconnection = "broker_error"        // the broker refused for another reason
	lostMalformed  disconnection = "malformed"           // an answer that could not be read
	lostPrepare    disconnection = "schema"              // given up, as the schema of a record cannot be fetched for now
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
	case errors.Is(err, errPrepare): // before the errors of networks, which may be the reason
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
