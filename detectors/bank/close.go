package bank

// Close releases memory and streams of a bank that is not used any more, so that others may be followed instead. It waits
// for running calibrations, and gives up those that wait.
func (p *Policy) Close() {
	for _, h := range p.held {
		h.GiveUp()
	}
	for _, g := range p.groups {
		p.release(g)
	}
}
