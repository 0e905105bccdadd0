package feedback

// places finds decisions by their hashes, which are all different. It holds only slots, so that a million decisions cost
// it between 6 and 12 bytes each: the hashes are read where the decisions are. Collisions take the next free cell.
type places struct {
	cells []uint32 // 1 + slot, 0 for an empty cell; a power of two of them
	n     int
	hash  func(slot uint32) uint64
}

// fewestCells is how many cells there are at first.
const fewestCells = 1 << 10

// find returns the slot of a hash.
func (p *places) find(hash uint64) (slot uint32, taken bool) {
	if p.n == 0 {
		return 0, false
	}
	slot = p.cells[p.cell(hash)]
	return slot - 1, slot != 0
}

// cell returns where a hash is, or the empty cell where it would be.
func (p *places) cell(hash uint64) uint64 {
	mask := uint64(len(p.cells) - 1)
	at := hash & mask
	for p.cells[at] != 0 && p.hash(p.cells[at]-1) != hash {
		at = (at + 1) & mask
	}
	return at
}

// put enters the slot of a hash that is not there yet. At most three quarters of the cells are taken.
func (p *places) put(hash uint64, slot uint32) {
	if 4*(p.n+1) > 3*len(p.cells) {
		p.grow()
	}
	p.cells[p.cell(hash)] = slot + 1
	p.n++
}

func (p *places) grow() {
	before := p.cells
	p.cells = make([]uint32, max(fewestCells, 2*len(before)))
	for _, slot := range before {
		if slot != 0 {
			p.cells[p.cell(p.hash(slot-1))] = slot
		}
	}
}

// remove removes a hash. It moves back those that a search would otherwise no longer reach.
func (p *places) remove(hash uint64) {
	mask := uint64(len(p.cells) - 1)
	hole := p.cell(hash)
	if p.cells[hole] == 0 {
		return
	}
	p.n--
	for at := (hole + 1) & mask; p.cells[at] != 0; at = (at + 1) & mask {
		home := p.hash(p.cells[at]-1) & mask
		if (at-home)&mask >= (at-hole)&mask {
			p.cells[hole] = p.cells[at]
			hole = at
		}
	}
	p.cells[hole] = 0
}
