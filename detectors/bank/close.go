package bank

// Close gives up the streams of a bank that is not used any more, so that others may be followed in their place, and its
// room in memory. It waits for a calibration that is under way.
func (p *Policy) Close() {
	if c := p.calibrating; c != nil {
		<-c.done
	}
	for _, g := range p.groups {
		p.limit.add(-g.streamCount())
		if g.away != nil {
			p.residents.countEvicted(-1)
		} else {
			p.residents.leave(g.resident)
		}
	}
}
