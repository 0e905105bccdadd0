package held

// Counts records how many branches groups had before units that changed the number, for freezes that are due at
// earlier units. The zero value is empty.
type Counts struct {
	of map[int][]counted // by number of the group, in the order of the units
}

type counted struct {
	unit   int64
	before int
}

// Changes records how many branches a group has before a unit that may change the number.
func (c *Counts) Changes(group int, unit int64, before int) {
	if c.of == nil {
		c.of = map[int][]counted{}
	}
	c.of[group] = append(c.of[group], counted{unit, before})
}

// Remains removes the last record of a group, because the unit has not changed the number.
func (c *Counts) Remains(group int) { c.of[group] = c.of[group][:len(c.of[group])-1] }

// At returns how many branches a group had after a unit; now is how many it has at present.
func (c *Counts) At(group int, unit int64, now int) int {
	for _, change := range c.of[group] {
		if change.unit > unit {
			return change.before
		}
	}
	return now
}

// Clear removes all records. Call it when no freeze is due.
func (c *Counts) Clear() { c.of = nil }
