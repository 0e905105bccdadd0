package ingest

// FNVBasis is the FNV-1a hash of the empty string.
const FNVBasis = 14695981039346656037

// FNV1a continues a 64-bit FNV-1a hash (http://www.isthe.com/chongo/tech/comp/fnv/) from that of the beginning of a text,
// which package hash/fnv does not offer.
func FNV1a(hash uint64, text []byte) uint64 {
	const prime = 1099511628211
	for _, b := range text {
		hash = (hash ^ uint64(b)) * prime
	}
	return hash
}
