package ingest

import (
	"context"
	"fmt"

	"github.com/segmentio/kafka-go/sasl"
)

// oauthBearer authenticates with a bearer token (RFC 7628). It reads the token from its file for each connection.
type oauthBearer struct{ file string }

// Name implements sasl.Mechanism.
func (oauthBearer) Name() string { return SASLOAuthBearer }

// Start implements sasl.Mechanism.
func (o oauthBearer) Start(context.Context) (sasl.StateMachine, []byte, error) {
	token, err := ReadToken(o.file)
	if err != nil {
		return nil, nil, err
	}
	return o, []byte("n,,\x01auth=Bearer " + token + "\x01\x01"), nil
}

// Next implements sasl.StateMachine. If the broker rejects the token, reason is its explanation in JSON.
func (oauthBearer) Next(_ context.Context, reason []byte) (done bool, response []byte, err error) {
	if len(reason) > 0 {
		return false, nil, fmt.Errorf("the broker rejected the token: %.200q", reason)
	}
	return true, nil, nil
}
