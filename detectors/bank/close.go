package bank

// Close gives up the streams of a bank that is not used any more, so that others may be followed in their place. It waits
// for a calibration that is under way.
func (p *Policy) Close() {
	if c := p.calibrating; c != nil {
		<-c.done
	}
	for _, g := range p.groups {
		if next := g.Line.Versions.Next; next != nil {
			p.limit.add(-len(next.Streams))
		}
		p.limit.add(-len(g.Streams))
	}
}
