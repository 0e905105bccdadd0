package bank

// Close releases the memory and the streams of a bank that is no longer used, so that other streams may be followed
// instead. It waits for a running calibration.
func (p *Policy) Close() {
	if c := p.calibrating; c != nil {
		<-c.done
	}
	for _, g := range p.groups {
		p.release(g)
	}
}
