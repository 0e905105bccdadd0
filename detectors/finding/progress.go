package finding

// Progress counts all groups, and those with a provisional and with an accepted baseline.
type Progress struct {
	Groups, Provisional, Accepted int
}

// ProgressOf counts the groups of all policies.
func ProgressOf(policies []*Summary) (all Progress) {
	for _, p := range policies {
		all.Groups += len(p.Groups)
		for i := range p.Groups {
			switch b := &p.Groups[i].Baseline; {
			case b.ID == "":
			case b.Provisional:
				all.Provisional++
			default:
				all.Accepted++
			}
		}
	}
	return all
}
