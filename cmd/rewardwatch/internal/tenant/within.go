package tenant

import "context"

// ownerKey is the context key of Within.
type ownerKey struct{}

// Within returns a context in which ids of incidents and baselines refer only to policies that owns accepts. Equal
// baselines have equal ids, even if they belong to different tenants.
func Within(ctx context.Context, owns func(policy string) bool) context.Context {
	return context.WithValue(ctx, ownerKey{}, owns)
}

// Owns reports whether ids in a context may refer to a policy: to any policy, unless the context is from Within.
func Owns(ctx context.Context, policy string) bool {
	owns, within := ctx.Value(ownerKey{}).(func(string) bool)
	return !within || owns(policy)
}
