package bank

// Close releases the memory and the streams of a bank that is no longer used, so that other streams may be followed
// instead. It waits for running calibrations, and gives up those that wait.
func (p *Policy) Close() {
	for _, h := range p.held {
		h.GiveUp()
	}
	for _, g := range p.groups {
		p.release(g)
	}
}
