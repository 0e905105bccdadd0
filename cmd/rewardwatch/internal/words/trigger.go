package words

import "strings"

// Trigger describes the trigger of a request, given its key in the ledger, such as "incident(*; critical) -> trainer".
// It omits the target, which pages show on its own. It returns other texts unchanged.
func Trigger(key string) string {
	on, rest, found := strings.Cut(key, "(")
	end := strings.LastIndex(rest, ") -> ")
	if !found || end < 0 {
		return key
	}
	rules := rest[:end]
	switch on {
	case "incident":
		return incidentTrigger(strings.Split(rules, "; "))
	case "schedule":
		return "Schedule " + rules
	case "outcome":
		return "Outcome of a previous request: " + rules
	}
	return key
}

// incidentTrigger describes the rules of a trigger: signals, or "*" for all, and further conditions.
func incidentTrigger(rules []string) string {
	var only []string
	if rules[0] != "*" {
		only = append(only, "signals "+listed(rules[0]))
	}
	for _, rule := range rules[1:] {
		switch field, values, some := strings.Cut(rule, " "); {
		case some:
			only = append(only, field+" "+named(field, values))
		case rule == "critical":
			only = append(only, "critical only")
		default:
			only = append(only, "including "+rule)
		}
	}
	if len(only) == 0 {
		return "Any incident except improvements"
	}
	return "Incidents: " + strings.Join(only, "; ")
}

// named lists the values of a field: words of Rewardwatch without their signs, and names of the user as they are.
func named(field, values string) string {
	if field == "policies" {
		return listed(values)
	}
	return Plain(listed(values))
}

// listed separates the names of a list with a comma and a space.
func listed(names string) string { return strings.ReplaceAll(names, ",", ", ") }
