package propose

import (
	"regexp"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/programs"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/quote"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/strict"
)

// rankPrograms ranks the programs of the repository. It runs before the environments and steps of the first program are
// preferred.
func (p *Proposal) rankPrograms() {
	env := ""
	clear := -1
	for _, e := range p.Environments {
		if e.clear > clear {
			env, clear = e.Value, e.clear
		}
	}
	training, evaluation := p.finder.Rank(env, p.Project)
	p.Programs, p.Evaluations = findings(training), findings(evaluation)
}

func findings(all []programs.Program) []Finding {
	out := make([]Finding, len(all))
	for i, x := range all {
		out[i] = Finding{Value: x.Name, File: x.File}
	}
	return out
}

// commands proposes the commands of the first programs.
func (p *Proposal) commands() {
	k := programs.Known{Project: p.Project, Steps: p.StepsNumber()}
	if len(p.Environments) > 0 {
		module, id, ok := strings.Cut(p.Environments[0].Value, ":")
		if k.Environment = id; !ok {
			k.Environment = module
		}
	}
	if len(p.chosen) > 0 {
		k.Algorithm = p.chosen[0].Value
	}
	p.Training, p.Evaluation = p.finder.Commands(k)
}

var commandWord = regexp.MustCompile(`^(python|sh|-c|-m)$`)

// asCommand returns a command as YAML, with its source in a comment.
func asCommand(c programs.Command) (string, error) {
	if len(c.Words) == 0 {
		return strings.TrimSuffix("[python, "+strict.Placeholder+".py] # "+quote.Comment(strings.Join(c.Notes, "; ")), " # "), nil
	}
	words := make([]string, len(c.Words))
	for i, w := range c.Words {
		if words[i] = w; commandWord.MatchString(w) {
			continue
		}
		quoted, err := quote.YAML(w)
		if err != nil {
			return "", err
		}
		if words[i] = quoted; strings.Contains(w, `"`) && !strings.Contains(w, "'") && strict.Unprintable(w) == "" {
			words[i] = "'" + w + "'"
		}
	}
	from, err := quote.YAML(c.From)
	return "[" + strings.Join(words, ", ") + "] # " + quote.Comment(strings.Join(append([]string{from}, c.Notes...), "; ")), err
}
