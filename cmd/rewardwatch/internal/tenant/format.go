package tenant

import (
	"context"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Format returns the format of a topic in which the names of policies are prefixed with the names of their tenants. It
// refuses events that claim another tenant's name. Without tenants, it returns the format unchanged.
func (l List) Format(topic string, of ingest.Format) ingest.Format {
	if !slices.ContainsFunc(l, Config.prefixes) {
		return of
	}
	return format{Format: of, tenants: l, whole: slices.IndexFunc(l, func(c Config) bool { return slices.Contains(c.Topics, topic) })}
}

type format struct {
	ingest.Format
	tenants List
	whole   int // index of the tenant that all events belong to, -1 if there is none
}

// NewDecoder implements ingest.Format.
func (f format) NewDecoder(o ingest.DecoderOptions) ingest.Decoder {
	d := &decoder{Decoder: f.Format.NewDecoder(o), tenants: f.tenants, whole: f.whole, names: make([]map[string]string, len(f.tenants))}
	d.capped = d.refuses
	return d
}

type decoder struct {
	ingest.Decoder
	tenants List
	whole   int
	names   []map[string]string // by index of the tenant, prefixed names of policies by their own names

	refuse  func(e *ingest.RecordError, raw []byte) // refuses a record of the current message
	refused int                                     // number of its records refused so far
	capped  func(e *ingest.RecordError, raw []byte) // the method refuses, stored so that a message allocates nothing
}

// refuses passes on a refused record, with its bytes unless there are too many of them. Records that are refused here
// and by the inner decoder belong to the same message.
func (d *decoder) refuses(e *ingest.RecordError, raw []byte) {
	if d.refused++; d.refused > ingest.MaxRefusals {
		raw = nil
	}
	d.refuse(e, raw)
}

// mostNames is the maximum number of policy names that are kept per tenant, so that an event allocates none.
const mostNames = 4096

// Prepare implements ingest.Preparer.
func (d *decoder) Prepare(ctx context.Context, m *ingest.Message) error {
	return ingest.Prepare(ctx, d.Decoder, m)
}

// Decode implements ingest.Decoder.
func (d *decoder) Decode(dst []ingest.Event, m *ingest.Message, refuse func(e *ingest.RecordError, raw []byte)) []ingest.Event {
	kept := len(dst)
	d.refuse, d.refused = refuse, 0
	dst = d.Decoder.Decode(dst, m, d.capped)
	for i := kept; i < len(dst); i++ {
		e := &dst[i]
		switch owner := d.owner(e); {
		case owner >= 0:
			e.Policy = d.named(owner, e.Policy)
		case d.tenants.named(e.Policy) >= 0:
			d.refuses(&ingest.RecordError{
				Pos: e.Pos, Reason: ingest.ReasonOtherTenant, Size: int64(len(m.Value)),
				Msg: "the policy name begins with the name of a tenant, but the topic and the labels do not belong to that tenant",
			}, m.Value)
			continue
		}
		if kept < i {
			dst[kept], dst[i] = dst[i], dst[kept] // keeps the memory of both
		}
		kept++
	}
	return dst[:kept]
}

// owner returns the index of the tenant that has the topic or the labels of an event, or -1 if there is none.
func (d *decoder) owner(e *ingest.Event) int {
	if d.whole >= 0 {
		return d.whole
	}
	return slices.IndexFunc(d.tenants, func(c Config) bool {
		if len(c.Labels) == 0 {
			return false
		}
		for name, value := range c.Labels {
			if !slices.Contains(e.Labels, ingest.Label{Name: name, Value: value}) {
				return false
			}
		}
		return true
	})
}

// named returns the prefixed name of a tenant's policy.
func (d *decoder) named(tenant int, policy string) string {
	if name, known := d.names[tenant][policy]; known {
		return name
	}
	if len(d.names[tenant]) >= mostNames || d.names[tenant] == nil {
		d.names[tenant] = map[string]string{}
	}
	name := d.tenants[tenant].Name + divider + policy
	d.names[tenant][strings.Clone(policy)] = name
	return name
}
