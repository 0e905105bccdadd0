package tenant

import "context"

// ownerKey is the key of what Within adds to a context.
type ownerKey struct{}

// Within returns a context in which the ids of incidents and baselines are those of policies that owns accepts. Equal
// baselines have equal ids, whosever they are.
func Within(ctx context.Context, owns func(policy string) bool) context.Context {
	return context.WithValue(ctx, ownerKey{}, owns)
}

// Owns reports whether a policy is one of those that ids in a context are of: any, unless Within has said it.
func Owns(ctx context.Context, policy string) bool {
	owns, within := ctx.Value(ownerKey{}).(func(string) bool)
	return !within || owns(policy)
}
