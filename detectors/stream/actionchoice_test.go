package stream

import "testing"

// If agents take turns, the units used to choose actions, and the other units, must include all agents.
func TestActionsAreChosenOnAFifthOfEveryAgentsUnits(t *testing.T) {
	for agents := 1; agents <= 64; agents++ {
		const units = 200
		for agent := range agents {
			n := 0
			for i := range units {
				if Chooses(i*agents + agent) {
					n++
				}
			}
			if share := float64(n) / units; share < .1 || share > 1./3 {
				t.Errorf("of %d agents, actions are chosen on %g of the units of one", agents, share)
			}
		}
	}
}
