package placeholders

import (
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

var (
	stoodFor  = pattern.MustCompile(`[<>{}\[\]$*…]|\.\.\.|path/to|path[_-]to[_-]|PATH|YOUR|your[-_]|^[A-Z][A-Z0-9_]{2,}$|_(?:name|id)$|(?i:\byour|(?:^|[=/])(?:folder|directory|dir|path|file|filename|foo|bar|x{3,})/|/(?:folder|directory|dir|path|file|filename|foo|bar|x{3,})(?:\.\w+)?$)`)
	flagAlone = pattern.MustCompile(`^--[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*$`)
	secret    = pattern.MustCompile(`(?i)^--?[\w-]*(?:api[-_]?key|token|passw|secret)`)
	ofProse   = pattern.MustCompile(`^(?:for|and|the|to|of|is|will|you|or|which|that|this)[.,:]?$`)
)

// Arguments splits the arguments in a command line as a shell does, and drops what is not for the program. It returns
// nil if one of them is a placeholder for something that only the user knows. The value of a flag for the model may be
// one. logs reports whether a flag concerns logs, whose value may be one, too.
func Arguments(line string, forModel, logs func(flag string) bool) []string {
	out := []string{}
	for i, word := range pytext.Words(line) {
		if strings.ContainsAny(word[:1], "#|&;>") || redirects.MatchString(word) {
			break
		}
		if i > 0 && len(out) > 0 && logs(out[len(out)-1]) && modules.Printable(word) && !strings.HasPrefix(word, "-") { // its value is left out with it
			out = append(out, word)
			continue
		}
		if name, value, joined := strings.Cut(word, "="); modules.Printable(word) && standsFor(word) {
			switch {
			case joined && stoodFor.MatchString(value) && forModel(name):
				continue
			case len(out) > 0 && forModel(out[len(out)-1]):
				out = out[:len(out)-1]
				continue
			}
		}
		if !modules.Printable(word) || standsFor(word) || ofProse.MatchString(word) || secret.MatchString(word) || strings.HasPrefix(word, "--help") || word == "-h" {
			return nil
		}
		plain := strings.TrimRight(word, ",;:!")
		if sentence := strings.TrimSuffix(plain, "."); endsWord.MatchString(sentence) {
			plain = sentence
		}
		if plain != "" {
			out = append(out, plain)
		}
		if plain != word { // the sentence continues
			break
		}
	}
	return out
}

// redirects matches a redirection of an output with a number, as in 2> errors.log.
var redirects = pattern.MustCompile(`^[0-9]>`)

// standsFor reports whether a word is a placeholder. The name of an argument, as in --env_id, and that of an algorithm,
// as in PPO, are not placeholders.
func standsFor(word string) bool {
	return !flagAlone.MatchString(word) && stoodFor.MatchString(word) && !ofAlgorithm.MatchString(word)
}

// ofAlgorithm matches the name of an algorithm, also as the value of an argument.
var ofAlgorithm = pattern.MustCompile(`(?i)^(?:--?[\w-]+=)?(?:` + traits.AlgorithmNames + `|gae)$`)

// endsWord matches the end of a word before a full stop. The dots of a path such as .. are not full stops.
var endsWord = pattern.MustCompile(`[A-Za-z0-9]$`)
