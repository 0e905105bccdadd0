package ingest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/spnego"
	"github.com/jcmturner/gokrb5/v8/types"
	"github.com/segmentio/kafka-go/sasl"
)

// kerberos authenticates with Kerberos V5 (RFC 4752). Each connection reads the files again and obtains its own
// tickets, so changes to the keytab or the KDC take effect without a restart, and no ticket expires in use.
type kerberos struct {
	principal, keytab, krb5Conf, service string
}

// newKerberos checks the files. Otherwise, the service would start and then fail to connect.
func newKerberos(c SASLConfig) (sasl.Mechanism, error) {
	k := kerberos{c.Username, c.KeytabFile, c.KRB5ConfFile, c.ServiceName}
	if k.krb5Conf == "" {
		k.krb5Conf = defaultKRB5Conf
	}
	if k.service == "" {
		k.service = defaultService
	}
	_, err := k.client()
	return k, err
}

// client returns a client of the KDC that has not requested a ticket yet.
func (k kerberos) client() (*client.Client, error) {
	conf, err := config.Load(k.krb5Conf)
	if _, partly := errors.AsType[config.UnsupportedDirective](err); err != nil && !partly {
		return nil, fmt.Errorf("read the Kerberos configuration %s: %w", k.krb5Conf, err)
	}
	name, realm, _ := strings.Cut(k.principal, "@")
	if realm == "" {
		realm = conf.LibDefaults.DefaultRealm
	}
	if realm == "" {
		return nil, fmt.Errorf("the Kerberos realm of %s is unknown: add @REALM, or default_realm in %s", k.principal, k.krb5Conf)
	}
	keys, err := k.keys(name, realm)
	if err != nil {
		return nil, err
	}
	// Active Directory does not commonly support FAST (gokrb5, USAGE.md).
	return client.NewWithKeytab(name, realm, keys, conf, client.DisablePAFXFAST(true)), nil
}

// keys reads the keytab. It omits errors from the parser, because they may contain keys.
func (k kerberos) keys(name, realm string) (*keytab.Keytab, error) {
	text, err := ReadSecretFile(k.keytab)
	if err != nil {
		return nil, fmt.Errorf("read the keytab for Kafka: %w", err)
	}
	keys := keytab.New()
	if keys.Unmarshal([]byte(text)) != nil {
		return nil, fmt.Errorf("read the keytab for Kafka: %s is not a keytab", k.keytab)
	}
	for _, e := range keys.Entries {
		if e.Principal.Realm == realm && strings.Join(e.Principal.Components, "/") == name {
			return keys, nil
		}
	}
	return nil, fmt.Errorf("read the keytab for Kafka: %s contains no key of %s@%s", k.keytab, name, realm)
}

// Name implements sasl.Mechanism.
func (kerberos) Name() string { return SASLGSSAPI }

// Start implements sasl.Mechanism.
func (k kerberos) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	kdc, err := k.client()
	if err != nil {
		return nil, nil, err
	}
	defer kdc.Destroy() // otherwise, it would keep renewing its ticket
	if err := kdc.Login(); err != nil {
		return nil, nil, fmt.Errorf("request a Kerberos ticket for %s: %w", k.principal, err)
	}
	service := k.service + "/" + sasl.MetadataFromContext(ctx).Host
	ticket, key, err := kdc.GetServiceTicket(service)
	if err != nil {
		return nil, nil, fmt.Errorf("request a Kerberos ticket for the service %s: %w", service, err)
	}
	request, err := spnego.NewKRB5TokenAPREQ(kdc, ticket, key, []int{gssapi.ContextFlagInteg}, nil)
	if err != nil {
		return nil, nil, err
	}
	token, err := request.Marshal()
	return &kerberosSession{key: key}, token, err
}

// kerberosSession negotiates a connection without a SASL security layer. Use TLS for encryption.
type kerberosSession struct {
	key    types.EncryptionKey
	agreed bool
}

// noLayer is the bit for "no security layer" in RFC 4752.
const noLayer = 1

// Next implements sasl.StateMachine.
func (s *kerberosSession) Next(_ context.Context, challenge []byte) (done bool, response []byte, err error) {
	if s.agreed {
		return true, nil, nil
	}
	if err := s.verify(challenge); err != nil {
		return false, nil, fmt.Errorf("the broker's response to the Kerberos ticket is invalid: %w", err)
	}
	layer := make([]byte, 4) // without an authorization identity: that of the ticket applies
	binary.BigEndian.PutUint32(layer, noLayer<<24)
	answer, err := gssapi.NewInitiatorWrapToken(layer, s.key)
	if err != nil {
		return false, nil, err
	}
	s.agreed = true
	response, err = answer.Marshal()
	return false, response, err
}

// verify checks that the broker knows the key of the ticket and accepts a connection without a security layer.
func (s *kerberosSession) verify(challenge []byte) error {
	var offer gssapi.WrapToken
	if err := offer.Unmarshal(challenge, true); err != nil {
		return err
	}
	if _, err := offer.Verify(s.key, keyusage.GSSAPI_ACCEPTOR_SEAL); err != nil {
		return err
	}
	if len(offer.Payload) != 4 || offer.Payload[0]&noLayer == 0 {
		return errors.New("it requires a security layer")
	}
	return nil
}
