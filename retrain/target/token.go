package target

// bearer returns the value of an Authorization header.
func bearer(token string) string { return "Bearer " + token }
