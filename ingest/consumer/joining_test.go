package consumer_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// A member that disappears before the group responds loses its partitions when its session ends.
func TestAMemberThatIsGoneBeforeItHasJoined(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	silent, gone := b.outsider(), b.outsider()
	if _, err := silent.Request(waitContext(t), b.joinRequest(time.Minute)); err != nil {
		t.Fatal(err)
	}
	b.awaitMembers(1) // the group waits for it when others join
	answered := make(chan bool)
	go func() {
		_, err := gone.Request(waitContext(t), b.joinRequest(time.Second))
		answered <- err == nil
	}()
	b.awaitMembers(2)
	gone.Close()
	if <-answered {
		t.Fatal("the group has answered the member that is to be gone before")
	}

	m := b.join()
	m.await("both partitions", func() bool { return len(m.Assigned()) == 2 })
	m.stop()
}

// outsider returns a client that joins groups in one request, like old clients.
func (b *bench) outsider() *kgo.Client {
	b.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(b.broker.Addrs()...), kgo.MaxVersions(kversion.V0_10_1()))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	return c
}

func (b *bench) joinRequest(session time.Duration) *kmsg.JoinGroupRequest {
	member := kmsg.NewConsumerMemberMetadata()
	member.Topics = []string{b.cfg.Topic}
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "range", member.AppendTo(nil)
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType, join.Protocols = b.cfg.Group, "consumer", append(join.Protocols, protocol)
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = int32(session.Milliseconds()), 5000
	return join
}

func (b *bench) awaitMembers(members int) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if info := b.broker.Cluster().GroupInfo(b.cfg.Group); info != nil && len(info.Members) == members {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("the group does not have %d members", members)
		}
	}
}
