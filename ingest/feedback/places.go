package feedback

// places is a hash table from the hashes of decisions, which are unique, to their slots. It stores only slots, so a
// decision takes between 6 and 12 bytes. Hashes are read from the decisions. Collisions use linear probing.
type places struct {
	cells []uint32 // 1 + slot, or 0 for an empty cell; the length is a power of two
	n     int
	hash  func(slot uint32) uint64
}

// fewestCells is the initial number of cells.
const fewestCells = 1 << 10

// find returns the slot of a hash.
func (p *places) find(hash uint64) (slot uint32, taken bool) {
	if p.n == 0 {
		return 0, false
	}
	slot = p.cells[p.cell(hash)]
	return slot - 1, slot != 0
}

// cell returns the index of the cell with a hash, or of the empty cell where it would be added.
func (p *places) cell(hash uint64) uint64 {
	mask := uint64(len(p.cells) - 1)
	at := hash & mask
	for p.cells[at] != 0 && p.hash(p.cells[at]-1) != hash {
		at = (at + 1) & mask
	}
	return at
}

// put adds the slot of a hash that is not in the table. At most three quarters of the cells are used.
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

// remove removes a hash. It moves back the following entries that a search would otherwise no longer reach.
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
