package finding

import (
	"encoding/json"
	"math"
)

// UnmarshalJSON reads what MarshalJSON wrote: null is NaN.
func (n *Number) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(text, (*float64)(n))
}
