package bank

// Close releases the memory and the streams of a bank that is no longer used. It waits for running calibrations, and
// cancels those that wait for a core.
func (p *Policy) Close() {
	for _, h := range p.held {
		h.GiveUp()
	}
	for _, g := range p.groups {
		p.release(g)
	}
}
