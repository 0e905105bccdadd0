package propose

import (
	"slices"
	"strings"
	"unicode"
)

// role is a field of telemetry version 1, with the names that recommender, LLM and reinforcement-learning teams use for
// it, most reliable first, and the kinds of values that it may have.
type role struct {
	field string
	names []string
	kinds []kind
}

// roles lists the roles in the order in which they choose their places.
func roles() []role {
	id, flag := []kind{isText, isNumber}, []kind{isTruth, isNumber}
	return []role{
		{"ts", []string{
			"ts", "timestamp", "time", "eventtime", "eventts", "timems", "tsms", "timestampms", "occurredat", "createdat", "datetime",
			"timeunixnano", "observedtimestamp", "at", "date", "when", "unixtime", "epochms", "loggedat", "tsu", "tsus", "tsns", "stampsec", "stampsecs", "stampseconds", "timestampseconds", "stamp",
			"zeit", "zeitstempel", "zeitpunkt", "fecha", "momento", "instante", "horodatage", "instant",
		}, []kind{isNumber, isText}},
		{"policy", []string{
			"policy", "policyid", "policyname", "model", "modelname", "modelid", "genairequestmodel", "agentname", "algorithm", "algo", "ranker",
			"strategy", "bot", "recommender", "controller", "bidder", "behaviorname", "mdl",
			"strategie", "modell", "estrategia", "politica", "modelo", "politique", "modele",
		}, []kind{isText}},
		{"policy_version", []string{
			"policyversion", "modelversion", "promptversion", "vwstatem", "agentversion", "modelbuild", "checkpoint", "modelcheckpoint", "ckpt", "modelckpt", "modelrevision", "version", "rev", "build", "revision", "modelsha", "gitsha", "githash", "gitcommit", "commit", "commitsha", "commithash", "weights",
		}, id},
		{"env_version", []string{"envversion", "environmentversion", "worldversion", "simulatorversion", "simversion", "firmwareversion", "firmware"}, id},
		{"reward_version", []string{"rewardversion", "rewardfunctionversion", "rewardmodelversion", "rewardfunction", "rewardfn", "rewardmodel"}, id},
		{"episode_id", []string{
			"episodeid", "episode", "trajectoryid", "rolloutid", "trajid", "sessionid", "traceid", "conversationid", "dialog", "dialogue", "dialogid", "dialogueid", "chatid", "threadid", "requestid",
			"reqid", "impressionid", "decisionid", "interactionid", "correlationid", "matchid", "gameid", "runid", "session", "trace", "conversation", "jobid", "mission", "missionid", "trip", "tripid", "sid", "ep", "epid", "epsid", "genaiconversationid", "sitzung", "lauf", "episodio", "sesion", "trajectory", "traj", "rollout", "run", "attempt",
		}, id},
		{"agent_id", []string{
			"agentid", "agent", "userid", "uid", "user", "customerid", "memberid", "accountid", "visitorid", "playerid", "deviceid", "robotid",
			"workerid", "actorid", "clientid", "envindex", "customer", "robot", "device", "worker", "player", "building", "buildingid", "machine", "machineid", "vehicle", "vehicleid", "drone", "droneid", "asset", "assetid", "turbine", "turbineid", "robotname", "devicename", "machinename", "vehiclename", "dronename", "playername",
			"intersection", "intersectionid", "elevator", "elevatorid", "thermostat", "thermostatid", "plantid", "chargerid", "warehouse", "warehouseid", "depot", "junction", "junctionid", "pump", "battery", "batteryid", "greenhouse", "boiler", "chiller",
			"nutzer", "kunde", "roboter", "usuario", "cliente", "utilisateur", "client",
		}, id},
		{"step", []string{"step", "stepid", "stepindex", "timestep", "turn", "turnindex", "stepnumber", "iteration", "round", "seq", "t", "index"}, []kind{isNumber}},
		{"episode.r", []string{"episodereturn", "return", "episodereward", "totalreward", "cumulativereward", "sumreward", "ret", "finalreturn", "epreturn", "epret", "epreward", "eprew", "sumrew", "sumofrewards", "rewardsum"}, []kind{isNumber}},
		{"episode.l", []string{"episodelength", "eplen", "numsteps", "nsteps", "episodesteps", "length", "len"}, []kind{isNumber}},
		{"reward", []string{
			"reward", "rewardvalue", "rew", "rwd", "r", "score", "rewardscore", "evaluationscore", "genaievaluationscorevalue", "scorevalue", "payoff", "utility",
			"clicked", "click", "isclick", "isclicked", "converted", "feedback", "rating", "grade", "stars", "liked", "thumbsup", "thumb", "thumbs", "vote", "verdict", "profit", "gain", "pnl", "payout", "winnings", "roas", "roi",
			"belohnung", "geklickt", "bewertung", "recompensa", "clic", "valoracion", "recompense", "note",
		}, []kind{isNumber, isTruth, isText}},
		{"target_prob", []string{"targetprob", "targetprobability", "targetpropensity", "evaluationprob", "evalprob", "acceptedprob"}, []kind{isNumber}},
		{"action_prob", []string{"actionprob", "labelprobability", "propensity", "actionprobability", "probability", "prob", "pscore", "pi"}, []kind{isNumber}},
		{"action", []string{
			"labelaction", "action", "actionid", "actionname", "actionindex", "actionidx", "discreteaction", "chosenaction", "actiontaken", "chosenarm", "arm", "armid", "chosen", "choice", "decision", "selected",
			"tool", "toolname", "genaitoolname", "toolcall", "move", "itemid", "item", "recommendeditem", "recommendation", "offerid", "offer", "variant", "variantid",
			"adid", "productid", "contentid", "shown", "command", "control", "act", "a", "sku", "skuid", "banner", "bannerid", "creative", "creativeid", "treatment", "listing",
			"listingid", "template", "templateid", "videoid", "trackid", "articleid", "route", "routedto", "assigned", "decisionvalue", "dose", "bid", "bidprice", "bidamount", "setpoint", "discount", "discountpct", "pricemultiplier", "markup", "markdown", "orderqty", "orderquantity", "reorderqty", "reorderquantity", "allocation",
			"aktion", "entscheidung", "auswahl", "accion", "oferta", "ofertaelegida", "eleccion", "choix",
		}, []kind{isText, isNumber, isTruth, isNumberList}},
		{"terminated", []string{
			"terminated", "done", "isdone", "terminal", "isterminal", "finished", "isfinished", "gameover", "ended", "isfinal", "completed", "closed", "d", "last", "islast",
			"beendet", "fertig", "terminado", "termine",
		}, flag},
		{"truncated", []string{"truncated", "istruncated", "timeout", "timedout", "timelimittruncated", "maxstepreached", "cutoff"}, []kind{isTruth}},
		{"env", []string{"env", "environment", "envid", "envname", "deployment", "stage", "site", "market", "scenario", "task"}, []kind{isText}},
		{"observation", []string{
			"observation", "observations", "obs", "state", "features", "context", "featurevector", "contextfeatures", "userfeatures", "sensors", "inputs", "s", "o",
			"beobachtung", "zustand", "observacion", "estado", "contexto", "etat", "contexte",
		}, []kind{isObject, isNumberList}},
		{"outcomes", []string{"outcomes", "outcome", "kpis", "kpi", "metrics", "results", "scores"}, []kind{isObject}},
		{"reward_components", []string{"rewardcomponents", "rewardparts", "rewards", "rewardbreakdown", "rewardterms"}, []kind{isObject}},
		{"labels", []string{"labels", "tags", "dimensions"}, []kind{isObject}},
	}
}

// accepts reports whether the kind of a place fits the role. Numbers and flags may be written as text.
func (r role) accepts(p *place) bool {
	switch r.field {
	case "episode.r":
		return slices.Contains(r.kinds, p.kind()) || isNumeral(p)
	case "step":
		return slices.Contains(r.kinds, p.kind()) || isCountedInText(p)
	case "terminated", "truncated":
		return slices.Contains(r.kinds, p.kind()) || isTextFlag(p)
	}
	return slices.Contains(r.kinds, p.kind())
}

// roleOf returns the role for a field.
func roleOf(field string) role {
	roles := roles()
	return roles[slices.IndexFunc(roles, func(r role) bool { return r.field == field })]
}

// outcomeNames returns names of results. Each becomes a component of outcomes.
func outcomeNames() []string {
	return []string{
		"conversion", "converted", "clicked", "click", "purchased", "purchase", "paid", "revenue", "amount", "success", "successful", "solved", "resolved",
		"passed", "correct", "latency", "latencyms", "duration", "durationms", "cost", "costusd", "tokens", "totaltokens", "inputtokens", "outputtokens",
		"rating", "thumbsup", "liked", "error", "errors", "escalated", "dwell", "dwelltime", "watchtime", "margin", "profit", "quality", "hallucination", "toxicity",
		"won", "win", "clicks", "conversions", "purchases", "orders", "bookings", "sales", "installs", "signups", "umsatz", "betrag", "erfolg", "importe", "compra", "exito", "montant", "achat",
	}
}

// isChosen reports whether a word in the name of a place means "chosen", as in routeChosen or equipe_choisie.
func isChosen(p *place) bool {
	return slices.ContainsFunc(wordsOf(p), func(word string) bool {
		return slices.Contains([]string{
			"chosen", "selected", "picked", "assigned", "gewahlt", "gewahlte", "gewahlter", "gewahltes", "gewaehlt", "gewaehlte",
			"elegido", "elegida", "seleccionado", "seleccionada", "choisi", "choisie", "retenu", "retenue",
		}, word)
	})
}

// spaced returns a name with a space before each capital letter that begins a word. Words in all capitals are not
// split.
func spaced(name string) string {
	var b strings.Builder
	letters := []rune(name)
	for i, r := range letters {
		inside := i > 0 && unicode.IsUpper(letters[i-1]) && (i+1 == len(letters) || !unicode.IsLower(letters[i+1]))
		if unicode.IsUpper(r) && !inside {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// scoreNames returns names of rewards that may also be the predictions of a model.
func scoreNames() []string {
	return []string{"score", "scorevalue", "rating", "grade", "stars", "utility", "r", "gain", "profit"}
}

// isResponse reports whether a place is named after a person's response to the choice.
func isResponse(p *place) bool {
	return slices.Contains([]string{
		"accepted", "redeemed", "opened", "responded", "replied", "bought", "booked", "purchased", "subscribed", "upgraded", "signedup",
	}, lastName(p))
}

// labelNames returns names of groups that are usually compared with each other.
func labelNames() []string {
	return []string{"region", "country", "platform", "tier", "segment", "locale", "language", "channel", "surface", "shard", "cluster", "experiment", "devicetype", "os", "map", "opponent", "weather", "land", "sprache", "pais", "idioma", "pays", "langue"}
}

// contextNames returns names of text that usually describes a request. It is the action only if nothing else can be.
func contextNames() []string { return []string{"intent", "difficulty", "genre", "persona"} }

// topic is the subject of text with few distinct values, according to its name.
type topic uint8

const (
	choices  topic = iota // the choice, or anything else
	contexts              // a property of the request
	groups                // a group that is compared with others
)

func topicOf(p *place) topic {
	switch {
	case isAny(labelNames(), p):
		return groups
	case isAny(contextNames(), p):
		return contexts
	}
	return choices
}

// typeNames returns names of fields that distinguish types of records.
func typeNames() []string {
	return []string{"type", "eventtype", "event", "kind", "recordtype", "eventname", "name", "messagetype", "category", "op", "topic", "evt", "ev", "typ", "tipo", "art"}
}

// rank returns the index of a place's name in names, which lists the most reliable names first. ok is false if names
// does not contain it. Both the last name and the last two names together count, such as user.id, as a path or as one
// name with a dot.
func rank(names []string, p *place) (r int, ok bool) {
	if p.isColumn {
		r = columnRank(names, lastName(p))
		return r, r >= 0
	}
	parts := p.names
	if last := parts[len(parts)-1]; strings.Contains(last, ".") {
		parts = strings.Split(last, ".")
		if r = slices.Index(names, plain(last)); r >= 0 {
			return r, true
		}
	}
	last := plain(parts[len(parts)-1])
	r = slices.Index(names, last)
	for _, asked := range []string{"was", "has", "is"} { // wasClicked
		if rest, ok := strings.CutPrefix(last, asked); ok && r < 0 {
			r = slices.Index(names, rest)
		}
	}
	if len(parts) > 1 {
		before := plain(parts[len(parts)-2])
		if both := slices.Index(names, before+last); both >= 0 && (r < 0 || both < r) {
			r = both
		}
		switch above := slices.Index(names, before); {
		case r < 0 && above >= 0 && slices.Contains([]string{"name", "id", "value", "key"}, last):
			r = above // item: {id: ...}
		}
	}
	return r, r >= 0
}
